"""The language of a note or a question: recognised, or left open."""

from __future__ import annotations

import pytest

from notewell.text.languages import LANGUAGE_NAMES, PROFILES, _profiles, _script_of, is_mostly_latin, language_of

QUESTIONS = {
    "en": "where did I leave the spare key?",
    "de": "Wo habe ich den Ersatzschlüssel hingelegt?",
    "fr": "où est-ce que j'ai rangé la clé de rechange ?",
    "es": "¿dónde está la llave de repuesto?",
    "it": "dove ho messo la chiave di riserva?",
    "pt": "onde está a chave reserva da garagem?",
    "nl": "waar heb ik de reservesleutel gelaten?",
    "pl": "gdzie jest zapasowy klucz do piwnicy?",
    "tr": "yedek anahtar nerede duruyor?",
    "vi": "chìa khóa dự phòng ở đâu?",
    "id": "di mana kunci cadangan rumah saya?",
    "cs": "kde je náhradní klíč od sklepa?",
    "sv": "var har jag lagt reservnyckeln till källaren?",
    "fi": "missä vara-avain on ja kenellä se on?",
    "hu": "hol van a pótkulcs a pincéhez?",
    "ro": "unde este cheia de rezervă pentru pivniță?",
    "ru": "где лежит запасной ключ от подвала?",
    "uk": "де лежить запасний ключ від підвалу?",
    "bg": "къде е резервният ключ за мазето?",
    "ar": "أين المفتاح الاحتياطي للقبو؟",
    "fa": "کلید یدکی کجاست؟",
    "zh": "备用钥匙放在哪里了?",
    "ja": "予備の鍵はどこですか",
    "ko": "여분의 열쇠는 어디에 있나요",
    "hi": "अतिरिक्त चाबी कहाँ है",
    "th": "กุญแจสำรองอยู่ที่ไหน",
    "el": "πού είναι το εφεδρικό κλειδί;",
    "he": "איפה המפתח הרזרבי",
    "ka": "სად არის სათადარიგო გასაღები",
}


@pytest.mark.parametrize(("language", "question"), QUESTIONS.items())
def test_a_question(language, question):
    assert language_of(question) == language


@pytest.mark.parametrize(
    "text",
    [
        "",
        "   ",
        "42",
        "🎉",
        "WX-4471",
        "Tomasz Kowalski",
        "nginx",
        "kubectl get pods",
        "Berlin Paris Roma",
        "\ud800",
        "ok",
    ],
)
def test_names_code_and_single_words_are_left_open(text):
    assert language_of(text) == ""


def test_a_word_of_another_language_does_not_decide():
    assert language_of("the café next to the Müller bakery opens at nine and closes at four") == "en"
    assert language_of("we met at 東京 station and then took the train back to the office") == "en"
    assert language_of("Das Meeting mit dem Team ist am Dienstag um neun, bitte den Report mitbringen") == "de"
    assert language_of("我们用 kubectl 和 nginx 部署服务, 然后重启") == "zh"


def test_danish_and_norwegian_are_told_apart_or_left_open():
    assert language_of("hvad hedder min nye chef, og hvornår begynder hun?") in {"da", ""}
    assert language_of("hva heter den nye sjefen min, og når begynner hun?") in {"no", ""}


def test_a_long_text_costs_no_more_than_its_beginning():
    note = "Der Ersatzschlüssel liegt unter dem Blumentopf neben der Tür. "
    assert language_of(note * 20_000) == "de"


def test_every_language_has_a_name():
    profiled = {language for languages, _ in _profiles().values() for language in languages}
    assert profiled <= set(LANGUAGE_NAMES)
    assert {_script_of(letter) for letter in "αאกกაअ가あ"} <= set(LANGUAGE_NAMES)
    assert PROFILES.stat().st_size < 100_000


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="empty"),
        pytest.param("guest wifi password", id="English"),
        pytest.param("¿Dónde está la contraseña del año pasado?", id="Spanish"),
        pytest.param("L’été où Zoë a mangé des œufs", id="French"),
        pytest.param("Straße, Größe, Übermäßig", id="German"),
        pytest.param("Tiếng Việt có nhiều dấu", id="Vietnamese"),
        pytest.param("2026-11-15 10:30 +49 (0) 30 / 42", id="digits and punctuation"),
        pytest.param("😀🎉 — … “”", id="emoji and typographic marks"),
        pytest.param("the α and β of the fund", id="a Greek symbol or two"),
        pytest.param("the restaurant in 東京 was great", id="one foreign word"),
        pytest.param("ｗｉｄｅ", id="full-width letters"),
    ],
)
def test_latin(text):
    assert is_mostly_latin(text)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("今天的会议记录", id="Chinese"),
        pytest.param("パスワードはどこですか", id="Japanese"),
        pytest.param("비밀번호가 뭐예요", id="Korean"),
        pytest.param("пароль от гостевой сети", id="Russian"),
        pytest.param("كلمة المرور", id="Arabic"),
        pytest.param("מה הסיסמה", id="Hebrew"),
        pytest.param("ποιος είναι ο κωδικός", id="Greek"),
        pytest.param("पासवर्ड क्या है", id="Hindi"),
        pytest.param("wifi 密码是什么", id="mostly Chinese"),
    ],
)
def test_other_scripts(text):
    assert not is_mostly_latin(text)
