"""A line and a place in it in, the nearest place out where the line may be cut without breaking a character in two.

What a reader sees as one character may be many code points: marks on a letter, a family of joined emoji, a flag, a
Korean syllable in pieces. The rules are those of Unicode's UAX #29 that forbid a break; where they depend on data that
Python lacks, a stricter rule takes their place, which at worst cuts a little earlier than needed.
"""

from __future__ import annotations

import unicodedata

_JOINER = "\u200d"
_VIRAMA = 9  # canonical combining class of signs that join two consonants
_MARKS = frozenset({"Mn", "Mc", "Me"})
# Extending characters that are no marks: joiners, half-width voicing marks, Thai and Lao vowels hung on a consonant
_EXTENDING = frozenset("\u200c\u200d\uff9e\uff9f\u0e33\u0eb3")


def cut_at_or_before(text: str, place: int, floor: int) -> int:
    """Return the last place in `floor < p <= place` where `text` may be cut; `place` itself when there is none.

    `floor` must be a place where the text may be cut, for flags are counted from there.
    """
    for candidate in range(place, floor, -1):
        if may_cut(text, candidate, floor):
            return candidate
    return place


def cut_at_or_after(text: str, place: int, ceiling: int, floor: int) -> int:
    """Return the first place in `place <= p < ceiling` where `text` may be cut; `ceiling` when there is none."""
    for candidate in range(place, ceiling):
        if may_cut(text, candidate, floor):
            return candidate
    return ceiling


def may_cut(text: str, place: int, floor: int = 0) -> bool:
    """Say whether no character of the reader's lies on both sides of `place`; flags are counted from `floor`."""
    if not 0 < place < len(text):
        return True
    before, after = text[place - 1], text[place]
    if before < "\x7f" and after < "\x7f":
        return not (before == "\r" and after == "\n")
    return not (
        _extends(after)
        or before == _JOINER
        or (unicodedata.combining(before) == _VIRAMA and unicodedata.category(after) == "Lo")
        or _halves_a_flag(text, place, floor)
        or _halves_a_syllable(before, after)
    )


def _extends(char: str) -> bool:
    return (
        unicodedata.category(char) in _MARKS
        or char in _EXTENDING
        or "\U0001f3fb" <= char <= "\U0001f3ff"  # skin tones
        or "\U000e0020" <= char <= "\U000e007f"  # tags, as in the flag of Scotland
    )


def _is_regional(char: str) -> bool:
    return "\U0001f1e6" <= char <= "\U0001f1ff"


def _halves_a_flag(text: str, place: int, floor: int) -> bool:
    if not (_is_regional(text[place - 1]) and _is_regional(text[place])):
        return False
    start = place - 1
    while start > floor and _is_regional(text[start - 1]):
        start -= 1
    return (place - start) % 2 == 1


def _syllable_part(char: str) -> str:
    """Return which part of a Korean syllable a character is: L, V, T, both LV, all LVT, or none."""
    if "\uac00" <= char <= "\ud7a3":
        return "LV" if (ord(char) - 0xAC00) % 28 == 0 else "LVT"  # 28 syllables share their first two letters
    for part, first, last in _JAMO:
        if first <= char <= last:
            return part
    return ""


_JAMO = (
    ("L", "\u1100", "\u115f"),
    ("V", "\u1160", "\u11a7"),
    ("T", "\u11a8", "\u11ff"),
    ("L", "\ua960", "\ua97c"),
    ("V", "\ud7b0", "\ud7c6"),
    ("T", "\ud7cb", "\ud7fb"),
)
_GOES_ON_WITH = {
    "L": frozenset({"L", "V", "LV", "LVT"}),
    "V": frozenset({"V", "T"}),
    "LV": frozenset({"V", "T"}),
    "T": frozenset({"T"}),
    "LVT": frozenset({"T"}),
}


def _halves_a_syllable(before: str, after: str) -> bool:
    if before < "\u1100":
        return False
    return _syllable_part(after) in _GOES_ON_WITH.get(_syllable_part(before), ())
