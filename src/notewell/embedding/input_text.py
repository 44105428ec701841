"""Examines text before it goes to a model."""

from __future__ import annotations

from notewell.text.languages import language_of

ENGLISH_ONLY = {"en": 1.0}  # the language weights of a model for English

# A word or two of another script leave the meaning of an English sentence to the model; past a quarter they decide it.
MAX_FOREIGN_LETTERS = 0.25

# Basic Latin to IPA extensions; Latin Extended Additional; Latin Extended-C, -D and -E; ligatures; full-width letters.
_LATIN_BLOCKS = (
    (0x0000, 0x02AF),
    (0x1E00, 0x1EFF),
    (0x2C60, 0x2C7F),
    (0xA720, 0xA7FF),
    (0xAB30, 0xAB6F),
    (0xFB00, 0xFB06),
    (0xFF21, 0xFF5A),
)


def is_mostly_latin(text: str) -> bool:
    """Tell whether at least three quarters of the letters are Latin; true for text without letters."""
    if text.isascii():
        return True
    letters = [ord(character) for character in text if character.isalpha()]
    foreign = sum(not any(first <= letter <= last for first, last in _LATIN_BLOCKS) for letter in letters)
    return foreign <= MAX_FOREIGN_LETTERS * len(letters)


def may_be_english(text: str) -> bool:
    """Tell whether a model for English can be given a text: false where another language is recognised."""
    return is_mostly_latin(text) and language_of(text) in {"", "en"}


def valid_unicode(text: str) -> str:
    """Return `text` with lone surrogates replaced: neither tokenizers nor providers accept them."""
    return text.encode("utf-8", "replace").decode("utf-8")
