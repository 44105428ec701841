"""Lines of a conversation in, chunks out, one after the other: what is open at the end can be gone on with later.

A chunk is a run of messages. Lines are gathered until the next does not fit; the last ones are carried over into the
next chunk. The outcome depends on the lines alone, not on how many were handed over at a time, so that a conversation
that was indexed as it grew has the chunks of one that was indexed at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from recollect.chunking.long_lines import cut_line
from recollect.chunking.weight import QUARTERS, weigh
from recollect.types import Chunk, Document, SpokenLine

WRAP_CHARS = 800  # as OpenClaw wraps long messages; about half a chunk, so that two fit and a snippet shows one
_NEWLINE = 1  # its weight between two lines of a chunk


class DialogueChunker:
    """Takes lines and gives chunks; `open_lines` is what the last chunk holds, to go on from in another run."""

    def __init__(self, open_lines: Iterable[SpokenLine] = (), *, tokens: int = 400, overlap: int = 80) -> None:
        self._limit = max(1, tokens) * QUARTERS
        self._overlap = max(0, min(overlap, tokens // 2)) * QUARTERS  # a chunk must bring something new
        self._open = [(line, _weight(line)) for line in open_lines]

    @property
    def open_lines(self) -> tuple[SpokenLine, ...]:
        """The lines of the chunk that later ones may still join."""
        return tuple(line for line, _ in self._open)

    @property
    def open_chunk(self) -> Chunk | None:
        """The chunk as it is now; None when nothing was said yet."""
        return _chunk_of([line for line, _ in self._open]) if self._open else None

    def add(self, lines: Iterable[SpokenLine]) -> Iterator[Chunk]:
        """Take in more lines and yield each chunk that is full by then."""
        for line in lines:
            for piece in wrapped(line, limit=self._limit):
                weight = _weight(piece)
                if self._open and self._filled() + weight > self._limit:
                    yield _chunk_of([held for held, _ in self._open])
                    self._open = self._carried(self._limit - weight)
                self._open.append((piece, weight))

    def _filled(self) -> int:
        return sum(weight for _, weight in self._open)

    def _carried(self, room: int) -> list[tuple[SpokenLine, int]]:
        """Return the last lines that fit into the overlap and leave room for the next."""
        first, filled = len(self._open), 0
        while first > 1 and filled + self._open[first - 1][1] <= min(self._overlap, room):
            first -= 1
            filled += self._open[first][1]
        return self._open[first:]


def chunk_dialogue(document: Document, *, tokens: int = 400, overlap: int = 80) -> list[Chunk]:
    """Return the chunks of a whole conversation, one message a line; blank lines stand for what was left out."""
    chunker = DialogueChunker(tokens=tokens, overlap=overlap)
    lines = (SpokenLine(number, text) for number, text in enumerate(document.text.split("\n"), start=1) if text)
    chunks = list(chunker.add(lines))
    last = chunker.open_chunk
    return [*chunks, last] if last else chunks


def wrapped(line: SpokenLine, *, limit: int) -> list[SpokenLine]:
    """Return the line as it is, or in pieces of `WRAP_CHARS` at most, each beginning with who speaks."""
    room = max(min(WRAP_CHARS, limit) - _NEWLINE, QUARTERS)  # the heaviest character must fit
    if len(line.text) * QUARTERS <= room or weigh(line.text) <= room:
        return [line]
    speaker, _, said = line.text.partition(": ")
    lead = f"{speaker}: "
    left = room - weigh(lead)
    if left < QUARTERS:  # limits too small for a name: cut the text alone
        said, lead, left = line.text, "", room
    pieces = (said[start:end].strip() for start, end in cut_line(said, limit=left, overlap=0))
    return [SpokenLine(line.line, lead + piece) for piece in pieces if piece]


def _weight(line: SpokenLine) -> int:
    return weigh(line.text) + _NEWLINE


def _chunk_of(lines: Sequence[SpokenLine]) -> Chunk:
    return Chunk(lines[0].line, lines[-1].line, "\n".join(line.text for line in lines))
