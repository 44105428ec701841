"""Finds a phrase in texts, ignoring case and line breaks, as whole words."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, field

from notewell.text.lexicon import is_unspaced

SHORTEST = 3  # characters; shorter phrases are everywhere
SHORTEST_UNSPACED = 2  # most words of Chinese have two


@dataclass(frozen=True, slots=True)
class Phrase:
    """A text to look for. In scripts without spaces, such as Chinese, Japanese and Thai, it is matched anywhere."""

    text: str
    whole_words: bool = True
    _pattern: re.Pattern[str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        forms = dict.fromkeys([self.text, *(unicodedata.normalize(form, self.text) for form in ("NFC", "NFD"))])
        patterns = (r"\s+".join(map(re.escape, form.split())) for form in forms)
        object.__setattr__(self, "_pattern", re.compile("|".join(patterns), re.IGNORECASE))

    @property
    def is_too_short(self) -> bool:
        """Whether it is too short to be useful."""
        bare = "".join(self.text.split())
        return len(bare) < (SHORTEST_UNSPACED if any(map(is_unspaced, bare)) else SHORTEST)

    def spans(self, text: str) -> Iterator[tuple[int, int]]:
        """Yield the spans of its occurrences."""
        at = 0
        while found := self._pattern.search(text, at):
            at = found.start() + 1
            if not self.whole_words or _is_whole(text, *found.span()):
                yield found.span()

    def is_in(self, text: str) -> bool:
        """Return whether a text contains it."""
        return next(self.spans(text), None) is not None

    def lines_in(self, text: str) -> tuple[int, ...]:
        """Return the 1-based lines that contain it or a part of it."""
        lines: dict[int, None] = {}
        first, counted = 1, 0
        for start, end in self.spans(text):
            first += text.count("\n", counted, start)
            counted = start
            lines.update(dict.fromkeys(range(first, first + text.count("\n", start, end) + 1)))
        return tuple(sorted(lines))


def _is_whole(text: str, start: int, end: int) -> bool:
    inside_left = start > 0 and _joins(text[start - 1]) and _joins(text[start])
    inside_right = end < len(text) and _joins(text[end - 1]) and _joins(text[end])
    return not (inside_left or inside_right)


def _joins(char: str) -> bool:
    """Return whether a character can be part of a word."""
    if is_unspaced(char):
        return False
    return char.isalnum() or char == "_" or unicodedata.category(char).startswith("M")
