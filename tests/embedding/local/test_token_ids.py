from __future__ import annotations

import json
import re
import string
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from notewell.embedding.local.token_ids import (
    MAX_SHORT_CHARACTERS,
    ShortTextTokenizer,
    WindowTokenizer,
    is_short_and_plain,
)

from .exported_model import shipped_folder, tiny_tokenizer

ALPHABET = st.sampled_from([*string.printable, "\x00", "\x1c", "\x1f", "\x7f"])
WORDS = st.sampled_from(
    ["the", "Guest", "wifi's", "don't", "we'll", "I'M", "HTTP/2", "v1.2.3", "a@b.c", "foo_bar", "   "]
)


@pytest.fixture(scope="module")
def both(pack):
    return ShortTextTokenizer(pack.tokenizer_json), WindowTokenizer(pack.tokenizer_json, max_tokens=512)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="empty"),
        pytest.param(" ", id="blank"),
        pytest.param("what is the guest wifi password?", id="question"),
        pytest.param("  two  spaces\t\ttabs\n\nlines  ", id="white space"),
        pytest.param("it's we're they'd I'll 'tis 'S", id="apostrophes"),
        pytest.param("x" * MAX_SHORT_CHARACTERS, id="one long word"),
        pytest.param("a\x00b\x07c\x7f", id="control characters"),
        pytest.param("a <mask> in the text</s>", id="special tokens"),
        pytest.param("café naïve", id="not ASCII"),
        pytest.param("def f(x): return {x: [1, 2.5e-3]}  # comment", id="code"),
    ],
)
def test_agrees_with_the_full_tokenizer(both, text):
    short, full = both
    assert is_short_and_plain(text)
    assert [short.encode(text)] == full.windows(text)


@pytest.mark.slow
@settings(max_examples=300)
@given(st.lists(st.one_of(st.text(ALPHABET, max_size=12), WORDS), max_size=12).map(" ".join))
def test_agrees_on_any_text_it_accepts(both, text):
    short, full = both
    if is_short_and_plain(text):
        assert [short.encode(text)] == full.windows(text)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("½ cup, x² and Ⅳ", id="numbers that are no digits"),
        pytest.param("a\x1cb", id="a separator that is white space for Python only"),
        pytest.param("Ⓐ and 🅰", id="circled letters"),
        pytest.param("lone \ud800 surrogate", id="lone surrogate"),
        pytest.param("x" * (MAX_SHORT_CHARACTERS + 1), id="too long"),
        pytest.param("გ" * MAX_SHORT_CHARACTERS, id="too many bytes for one window"),
    ],
)
def test_leaves_the_rest_to_the_full_tokenizer(text):
    assert not is_short_and_plain(text)


# --- added tokens and other scripts ---------------------------------------------------------------

SENTENCES = """
Where did I put the spare key for the bike shed, and who borrowed it on 3 May?
Wo liegt der Ersatzschlüssel für den Fahrradkeller, und wer hat ihn über Ostern ausgeliehen?
Où est passée la clé du garage ? Je l'ai prêtée à Zoé avant l'été, n'est-ce pas.
¿Dónde está la llave de repuesto? El año pasado la guardó mi señora, «creo».
Dov'è la chiave di riserva? Perché non è più nella scatola, cioè sull'armadio?
Onde está a chave reserva? Não, a avó não levou; está no sótão às 18h.
Waar ligt de reservesleutel? Hij zou in het schuurtje zijn, naast de fiets.
Gdzie jest zapasowy klucz? Żółta szafka, trzecia półka, proszę sprawdzić.
Где лежит запасной ключ? Не знаю, нет, спроси у Маши — она вернётся в 17:30.
Де лежить запасний ключ? Її не було вдома, об'єкт зачинено.
Yedek anahtar nerede? Şemsiyelik yanında, üçüncü çekmecede değil mi?
Chìa khóa dự phòng ở đâu? Tôi không nhớ, hình như để trong ngăn kéo.
Di mana kunci cadangan? Ibu bilang sudah ditaruh di laci dapur.
备用钥匙放在哪里了？我的自行车在银行旁边，5月3日借给了小王。
備用鑰匙放在哪裡？星期三（下午）還給王先生了嗎？
スペアキーはどこに置きましたか。昨日の夜、机の上にあったと思います。
예비 열쇠는 어디에 있나요? 오늘 날씨가 좋아서 자전거를 탔어요.
أين المفتاح الاحتياطي؟ لا أعرف، ربما في الدُّرج عند المدخل.
מפתח חילוף נמצא איפה? אני לא זוכר, אולי במגירה ליד הדלת.
अतिरिक्त चाबी कहाँ है? मुझे नहीं पता, शायद दराज़ में है।
กุญแจสำรองอยู่ที่ไหน ฉันจำไม่ได้ ไม่แน่ใจว่าอยู่ในลิ้นชักหรือเปล่า
Πού είναι το εφεδρικό κλειδί; Ίσως στο συρτάρι δίπλα στην πόρτα.
სათადარიგო გასაღები სად არის? உதிரி சாவி எங்கே? ትርፍ ቁልፍ የት ነው?
emoji 👍🏽 👨‍👩‍👧 → ½ € 10,50 • „zitiert“ … naïve Ångström e\u0301 i\u0307 <mask> </s> #tag snake_case don't we'll
""".strip().splitlines()


def lines_of_every_script(count):
    """Yield shuffled, cut and joined pieces of the sentences: words next to each other that never were."""
    random = Random(17)
    words = [[word for word in re.split(r"(\s|(?<=[^\x00-\x7f]))", sentence) if word] for sentence in SENTENCES]
    for number in range(count):
        own = words[number % len(words)]
        mixed = (
            random.choices(own, k=random.randint(1, 40)) if number % 3 else random.choices(random.choice(words), k=9)
        )
        joined = random.choice(["", " ", " ", "  ", "\n"]).join([*mixed, *random.choices(own, k=3)])
        yield joined[: random.choice([20, 120, MAX_SHORT_CHARACTERS])]


@pytest.fixture(scope="module", params=["granite", "with added words", "shipped"])
def any_vocabulary(request):
    if request.param == "granite":
        content = request.getfixturevalue("pack").tokenizer_json
    elif request.param == "with added words":
        content = json.dumps(tiny_tokenizer()).encode()
    else:
        content = (shipped_folder() / "tokenizer.json").read_bytes()
    return ShortTextTokenizer(content), WindowTokenizer(content, max_tokens=2048)


@pytest.mark.parametrize("text", SENTENCES)
def test_every_script_agrees_with_the_full_tokenizer(any_vocabulary, text):
    short, full = any_vocabulary
    assert [short.encode(text)] == full.windows(text)
    assert short.plain_ids(text) == full.plain_ids(text)


@pytest.mark.slow
def test_ten_thousand_lines_agree_with_the_full_tokenizer(any_vocabulary):
    short, full = any_vocabulary
    lines = [line for line in lines_of_every_script(11_500) if is_short_and_plain(line)]
    assert len(lines) >= 10_000
    wrong = [line for line in lines if [short.encode(line)] != full.windows(line)]
    assert not wrong


def test_an_added_word_within_a_longer_one_is_no_word():
    content = json.dumps(tiny_tokenizer()).encode()
    short, full = ShortTextTokenizer(content), WindowTokenizer(content, max_tokens=512)
    (laut,) = set(short.plain_ids("laut"))
    assert short.plain_ids("  laut.")[0] == laut  # takes the blanks along
    assert laut not in short.plain_ids("lauter flaut laut_ laut1 laute\u0301")
    for text in ("lauter flaut laut_ laut1", "我的的我", "darüber über", " über  für", "lautlaut laut laut"):
        assert short.plain_ids(text) == full.plain_ids(text)


# --- windows -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def window_tokenizer(pack):
    return WindowTokenizer(pack.tokenizer_json, max_tokens=16)


@pytest.mark.parametrize("words", [0, 1, 13, 14, 15, 28, 29, 100])
def test_windows_hold_every_token_once_between_start_and_end(window_tokenizer, words):
    text = " ".join(["word"] * words)
    windows = window_tokenizer.windows(text)
    assert all(window[0] == 0 and window[-1] == 2 and len(window) <= 16 for window in windows)
    assert sum(len(window) - 2 for window in windows) == words


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("lone \ud800 surrogate", id="lone surrogate"),
        pytest.param("nul \x00 byte", id="NUL"),
        pytest.param("\U0001f468\u200d\U0001f469\u200d\U0001f467", id="emoji family"),
    ],
)
def test_odd_texts_have_windows(window_tokenizer, text):
    assert len(window_tokenizer.windows(text)[0]) > 2
