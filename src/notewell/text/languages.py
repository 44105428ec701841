"""Recognises the language of a note or a question: by its script where that decides, else by profile.

Latin, Cyrillic and Arabic text is compared with `language_profiles.txt`, the most frequent words and letter trigrams of
each language; `python -m evals.languages` writes and measures it. A word that a profile lists counts as a word, any
other by its trigrams. The answer is empty where the evidence is thin: names, code, a word or two.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

PROFILES = Path(__file__).with_name("language_profiles.txt")
READ_LETTERS = 600  # characters of a text that are read: more do not change the answer
LEAST_LEAD = 3.0  # natural logarithm: the best language must be e^3 times as likely as the next,
LEAST_LEAD_PER_WORD = 0.1  # and lead by this much a word, which a list of names or code does not
MIXED = 0.25  # a script with this share of the letters decides over the Latin ones

_WORD = re.compile(r"[^\W\d_]+")
_LATIN, _CYRILLIC, _ARABIC, _HAN = "latin", "cyrillic", "arabic", "han"
_SCRIPTS = (  # first and last letter, and the language where one has the script nearly to itself
    (0x0000, 0x02AF, _LATIN),
    (0x0370, 0x03FF, "el"),
    (0x0400, 0x052F, _CYRILLIC),
    (0x0530, 0x058F, "hy"),
    (0x0590, 0x05FF, "he"),
    (0x0600, 0x077F, _ARABIC),
    (0x0900, 0x097F, "hi"),
    (0x0980, 0x09FF, "bn"),
    (0x0A00, 0x0A7F, "pa"),
    (0x0A80, 0x0AFF, "gu"),
    (0x0B80, 0x0BFF, "ta"),
    (0x0C00, 0x0C7F, "te"),
    (0x0C80, 0x0CFF, "kn"),
    (0x0D00, 0x0D7F, "ml"),
    (0x0D80, 0x0DFF, "si"),
    (0x0E00, 0x0E7F, "th"),
    (0x0E80, 0x0EFF, "lo"),
    (0x1000, 0x109F, "my"),
    (0x10A0, 0x10FF, "ka"),
    (0x1100, 0x11FF, "ko"),
    (0x1200, 0x139F, "am"),
    (0x1780, 0x17FF, "km"),
    (0x1E00, 0x1EFF, _LATIN),
    (0x1F00, 0x1FFF, "el"),
    (0x2C60, 0x2C7F, _LATIN),
    (0x3040, 0x30FF, "ja"),
    (0x3130, 0x318F, "ko"),
    (0x31F0, 0x31FF, "ja"),
    (0x3400, 0x9FFF, _HAN),
    (0xA720, 0xA7FF, _LATIN),
    (0xAB30, 0xAB6F, _LATIN),
    (0xAC00, 0xD7FF, "ko"),
    (0xF900, 0xFAFF, _HAN),
    (0xFB00, 0xFB06, _LATIN),
    (0xFB50, 0xFEFC, _ARABIC),
    (0xFF21, 0xFF5A, _LATIN),
    (0xFF66, 0xFF9F, "ja"),
    (0x20000, 0x3FFFF, _HAN),
)

_NAMES = """
am Amharic ar Arabic bg Bulgarian bn Bengali cs Czech da Danish de German el Greek en English es Spanish fa Persian
fi Finnish fr French gu Gujarati he Hebrew hi Hindi hu Hungarian hy Armenian id Indonesian it Italian ja Japanese
ka Georgian km Khmer kn Kannada ko Korean lo Lao ml Malayalam my Burmese nl Dutch no Norwegian pa Punjabi pl Polish
pt Portuguese ro Romanian ru Russian si Sinhala sv Swedish ta Tamil te Telugu th Thai tr Turkish uk Ukrainian
vi Vietnamese zh Chinese
""".split()
LANGUAGE_NAMES = dict(zip(_NAMES[::2], _NAMES[1::2], strict=True))  # by ISO 639-1 code: all that can be recognised


@lru_cache(maxsize=512)
def language_of(text: str) -> str:
    """Return the ISO 639-1 code of the language of a text; empty if it cannot be told."""
    text = text[:READ_LETTERS]
    script = _LATIN if text.isascii() else _script(text)
    if script == _HAN:
        return "zh"
    if script not in {_LATIN, _CYRILLIC, _ARABIC}:
        return script
    return _by_profile(_WORD.findall(text.lower()), script)


def _script(text: str) -> str:
    """Return the script that decides, or its language; empty for a text without letters."""
    counts = Counter(map(_script_of, filter(str.isalpha, text)))
    total = counts.total()
    if counts["ja"] and counts["ja"] + counts[_HAN] > MIXED * total:
        return "ja" if counts["ja"] > 0.1 * counts[_HAN] else _HAN  # Chinese may quote a Japanese name
    latin = counts.pop(_LATIN, 0)
    if not counts:
        return _LATIN if latin else ""
    script, count = max(counts.items(), key=lambda item: item[1])
    return script if count > MIXED * total else _LATIN


@lru_cache(maxsize=4096)
def _script_of(letter: str) -> str:
    code = ord(letter)
    return next((script for first, last, script in _SCRIPTS if first <= code <= last), "")


def _by_profile(words: list[str], script: str) -> str:
    languages, evidence = _profiles()[script]
    scores = dict.fromkeys(languages, 0.0)
    spoken: set[str] = set()  # with a listed word: a Latin name says where somebody is from, not what is spoken
    for word in words:
        if listed := evidence.get(word):
            spoken.update(language for language, _ in listed)
        for known in (listed,) if listed else map(evidence.get, trigrams(word)):
            for language, weight in known or ():
                scores[language] += weight
    (best, most), (_, next_most) = sorted(scores.items(), key=lambda item: -item[1])[:2]
    clear = most - next_most >= max(LEAST_LEAD, LEAST_LEAD_PER_WORD * len(words))
    return best if clear and (best in spoken or script != _LATIN) else ""


def trigrams(word: str) -> Iterable[str]:
    """Return the letter trigrams of a word with its borders, and its letters that English lacks."""
    spaced = f"_{word}_"
    pieces = [f"_{spaced[start : start + 3]}" for start in range(len(spaced) - 2)]  # `_` tells them from words
    return pieces if word.isascii() else pieces + [f"_{letter}" for letter in word if letter > "\x7f"]


@cache
def _profiles() -> Mapping[str, tuple[tuple[str, ...], Mapping[str, list[tuple[str, float]]]]]:
    """Return the languages of each script, and for each word and trigram how much more likely each makes it."""
    found: dict[str, tuple[list[str], dict[str, list[tuple[str, float]]]]] = {}
    for line in PROFILES.read_text(encoding="utf-8").splitlines():
        script, language, weight, *features = line.split(" ")
        languages, evidence = found.setdefault(script, ([], {}))
        if language not in languages:
            languages.append(language)
        for feature in features:
            evidence.setdefault(feature, []).append((language, float(weight)))
    return {script: (tuple(languages), evidence) for script, (languages, evidence) in found.items()}


# --- what a model for English can be given -------------------------------------------------------

ENGLISH_ONLY = {"en": 1.0}  # the language weights of such a model


def is_mostly_latin(text: str) -> bool:
    """Return whether at least three quarters of the letters are Latin; true for text without letters.

    A word or two of another script leave the meaning of an English sentence to the model; more of them decide it.
    """
    if text.isascii():
        return True
    scripts = [_script_of(character) for character in text if character.isalpha()]
    return sum(script != _LATIN for script in scripts) <= MIXED * len(scripts)


def may_be_english(text: str) -> bool:
    """Return whether a model for English can be given a text: false where another language is recognised."""
    return is_mostly_latin(text) and language_of(text) in {"", "en"}
