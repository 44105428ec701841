"""Tells writing in Latin letters from other scripts: a text comes in, a yes or no goes out."""

from __future__ import annotations

# A word or two of another script in an English sentence leaves its meaning to the model; past a quarter it decides.
MOST_FOREIGN_LETTERS = 0.25

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
    """Say whether at least three quarters of the letters of `text` are Latin; a text without letters is."""
    if text.isascii():
        return True
    letters = [ord(character) for character in text if character.isalpha()]
    foreign = sum(not _is_latin(letter) for letter in letters)
    return foreign <= MOST_FOREIGN_LETTERS * len(letters)


def _is_latin(letter: int) -> bool:
    return any(first <= letter <= last for first, last in _LATIN_BLOCKS)
