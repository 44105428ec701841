"""A new text and what is known in, the pieces that say the same or nearly the same out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

SAME = 0.8  # share of words in common from which two statements say the same, if no name, number or `not` differs
SIMILAR = 0.5  # from here on a person should look at both
MOST_PIECES = 400  # statements of one note that are compared; a diary of years has more, and the newest come last

_WORD = re.compile(r"[^\W_]+(?:['’.@:/_-]?[^\W_]+)*")
_BULLET = re.compile(r"\s*(?:[-*+>]|\d+[.)])\s+")
_NEGATIONS = frozenset("no not never none nothing without cannot nicht kein keine nie pas jamais nunca".split())
_SENTENCE_END = re.compile(r"(?<=[.!?。！？])\s+")
# Words that carry no statement of their own: leaving them out lets a reworded sentence be seen as the same.
_LIGHT = frozenset(
    "a an the is are was were be been it its this that of to in on at for and or by with as our my".split()
)


@dataclass(frozen=True, slots=True)
class Known:
    """A statement of a note that is like a new text."""

    path: str
    line: int  # 1-based
    text: str
    likeness: float  # 0 to 1; 1 is the same words
    same: bool  # says the same: writing it again would add nothing

    @property
    def citation(self) -> str:
        return f"{self.path}#L{self.line}"


def likenesses(text: str, path: str, note: str, *, first_line: int = 1) -> list[Known]:
    """Return the statements of a note, or of a piece of it, that are like `text`, the most alike first."""
    words = _words(text)
    if not words:
        return []
    found = []
    for line, piece in _pieces(note.split("\n"), text):
        likeness, same = _compare(words, _words(piece))
        if likeness >= SIMILAR:
            found.append(Known(path, first_line + line, piece.strip(), round(likeness, 3), same))
    return sorted(found, key=lambda known: (not known.same, -known.likeness, known.line))


def best_of(found: Iterable[Known], limit: int) -> tuple[Known, ...]:
    """Return the most alike, each place once."""
    places: dict[tuple[str, int], Known] = {}
    for known in sorted(found, key=lambda known: (not known.same, -known.likeness)):
        places.setdefault((known.path, known.line), known)
    return tuple(places.values())[:limit]


def _pieces(lines: list[str], text: str) -> Iterator[tuple[int, str]]:
    """Yield lines, sentences and, for a text of several lines, runs of as many lines, the last of a note first."""
    height = max(1, len([line for line in text.split("\n") if line.strip()]))
    filled = [(number, _BULLET.sub("", line, count=1)) for number, line in enumerate(lines) if line.strip()]
    for number, line in filled[-MOST_PIECES:]:
        yield number, line
        sentences = _SENTENCE_END.split(line)
        if len(sentences) > 1:
            yield from ((number, sentence) for sentence in sentences)
    if height > 1:
        for at in range(max(0, len(filled) - MOST_PIECES), len(filled) - height + 1):
            yield filled[at][0], "\n".join(line for _, line in filled[at : at + height])


def _words(text: str) -> dict[str, str]:
    """Return the words that count, folded, each with how it was written."""
    written = {word.casefold(): word for word in _WORD.findall(text)}
    return {word: shown for word, shown in written.items() if word not in _LIGHT} or written


def _compare(new: dict[str, str], known: dict[str, str]) -> tuple[float, bool]:
    shared = new.keys() & known.keys()
    if not shared:
        return 0.0, False
    likeness = len(shared) / len(new.keys() | known.keys())
    differing = [(word, new.get(word) or known[word]) for word in new.keys() ^ known.keys()]
    return likeness, likeness >= SAME and not any(_decides(word, shown) for word, shown in differing)


def _decides(word: str, shown: str) -> bool:
    """Say whether a word makes another statement of a sentence: a number, a name, a denial."""
    return word in _NEGATIONS or shown != word or any(map(str.isdigit, word))
