"""The text from the beginning of a token on in, the same without the line breaks a terminal or mail put into it out."""

from __future__ import annotations

import re
from dataclasses import dataclass

from notewell.text.redaction.guessing import looks_random

REACH = 1200  # characters looked at behind a beginning; the longest tokens that are wrapped are JWTs

# A break in a token: a run goes up to the end of the line (perhaps with the shell's backslash) and on in the next one,
# for 6 characters at least: less is not worth hiding and could be a word.
_BREAK = re.compile(r"(?<=[A-Za-z0-9_.+/=$%-])[ \t]*\\?\r?\n[ \t]*(?:[>|#*][ \t]*)?(?=[A-Za-z0-9_.+/=$%-]{6})")
_PIECE = re.compile(r"[A-Za-z0-9_.+/=$%-]+")
_MIXED = re.compile(r"[0-9]|[a-z].*[A-Z]|.[A-Z].*[a-z]")


@dataclass(frozen=True, slots=True)
class Unwrapped:
    """Text without its breaks, and where in the original each piece begins."""

    text: str
    offset: int  # where the token begins in `text`
    pieces: tuple[tuple[int, int], ...]  # (position in `text`, position in the original), ascending

    def end_of(self, pattern: re.Pattern[str], straight: int | None) -> int | None:
        """Return where a token ends in the original, breaks looked through; `straight` is where it ends without."""
        found = pattern.match(self.text, self.offset) if len(self.pieces) > 1 else None
        if found is None:
            return straight
        end = self._original(found.end())
        if straight is not None and end <= straight:
            return straight
        if straight is None:  # only with the next line is the form complete
            return end if looks_random(found.group()) else None
        inside = [at for at, _ in self.pieces[1:] if at < found.end()]
        return end if all(self._continues(at, found) for at in inside) else straight

    def _continues(self, at: int, found: re.Match[str]) -> bool:
        """Say whether a piece goes on with a token that could have ended before: it holds digits or mixed case."""
        piece = _PIECE.match(self.text, at, found.end())
        return piece is not None and _MIXED.search(piece.group()) is not None

    def _original(self, position: int) -> int:
        begins, original = next((piece for piece in reversed(self.pieces) if piece[0] < position), self.pieces[0])
        return original + position - begins


def unwrapped_after(text: str, at: int) -> Unwrapped:
    """Return the text from shortly before `at` on, without its breaks."""
    first = max(0, at - 8)  # patterns look at what stands before a token
    last = min(len(text), at + REACH)
    parts: list[str] = []
    pieces: list[tuple[int, int]] = []
    length, begins = 0, first
    for found in (*_BREAK.finditer(text, at, last), None):
        ends = found.start() if found else last
        pieces.append((length, begins))
        parts.append(text[begins:ends])
        length += ends - begins
        begins = found.end() if found else last
    return Unwrapped("".join(parts), at - first, tuple(pieces))
