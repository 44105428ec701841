"""Text in, its weight in quarter tokens out: what every limit of a chunk is measured in."""

from __future__ import annotations

import re

QUARTERS = 4  # of a token a character: English prose averages about four characters a token

# Scripts written without blanks, where a character is about a word part, plus full-width forms:
# jamo, radicals to unified ideographs (kana, bopomofo and hangul letters between them), jamo extended A, syllables and
# extended B, compatibility ideographs, vertical forms, half- and full-width forms, kana supplements, planes 2 and 3.
_WIDE_RUN = re.compile(
    "[\u1100-\u11ff\u2e80-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\ufe30-\ufe4f\uff00-\uffef"
    "\U0001aff0-\U0001b16f\U0001f200-\U0001f2ff\U00020000-\U0003ffff]+"
)


def weigh(text: str) -> int:
    """Return the weight of `text` in quarter tokens: 1 a character, 4 a CJK character."""
    if text.isascii():
        return len(text)
    return len(text) + (QUARTERS - 1) * sum(map(len, _WIDE_RUN.findall(text)))


def fitting_end(text: str, start: int, limit: int) -> int:
    """Return the largest `end` for which `text[start:end]` weighs at most `limit`."""
    window = text[start : start + limit]
    if weigh(window) <= limit:
        return start + len(window)
    low, high = limit // QUARTERS, len(window)
    while low < high:
        middle = (low + high + 1) // 2
        if weigh(window[:middle]) <= limit:
            low = middle
        else:
            high = middle - 1
    return start + low


def fitting_start(text: str, end: int, limit: int) -> int:
    """Return the smallest `start` for which `text[start:end]` weighs at most `limit`."""
    window = text[max(0, end - limit) : end][::-1]
    return end - fitting_end(window, 0, limit)
