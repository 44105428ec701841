"""An open file and a span of bytes in, its lines with a running hash out; never more than one line is held."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

BLOCK_BYTES = 256 * 1024  # larger reads are no faster; the rest of a block costs memory
LONGEST_LINE = 4 * 1024 * 1024  # bytes; longer ones are pictures and dumps of tools, and JSON takes ten times its size
FINGERPRINT_BYTES = 4096  # at either end: a page of a file is what a rewrite changes at least


class Line(NamedTuple):
    """One line of a file, with where reading stands after it."""

    number: int  # 1-based
    content: bytes | None  # without its newline; None when it is too long to be read
    end: int  # the byte after its newline
    chain: str  # hash of all bytes up to there, line by line
    ended: bool = True  # False for the last line of a file that ends without a newline


@dataclass(slots=True)
class ByteCounter:
    """Counts what is read from files, to show what a run costs."""

    count: int = 0


def lines_of(
    file: io.FileIO, counter: ByteCounter, *, start: int, stop: int, number: int, chain: str
) -> Iterator[Line]:
    """Yield the lines from byte `start` to byte `stop`; `number` lines came before, and `chain` is their hash."""
    gathered = _Gathered(chain)
    end = start
    for block in _blocks(file, counter, start, stop):
        at = 0
        while (newline := block.find(b"\n", at)) >= 0:
            gathered.add(block[at:newline])
            number, end, at = number + 1, end + gathered.length + 1, newline + 1
            chain = gathered.chain()
            yield Line(number, gathered.content(), end, chain)
            gathered = _Gathered(chain)
        gathered.add(block[at:])
    if gathered.length:
        yield Line(number + 1, gathered.content(), end + gathered.length, gathered.chain(), ended=False)


def count_lines(file: io.FileIO, counter: ByteCounter, *, start: int, stop: int) -> int:
    """Return how many lines end between two bytes."""
    return sum(block.count(b"\n") for block in _blocks(file, counter, start, stop))


def fingerprint(file: io.FileIO, counter: ByteCounter, length: int) -> str:
    """Return a hash of both ends of the first `length` bytes: what is read again to see whether they still stand."""
    hasher = hashlib.sha256()
    for start, stop in ((0, min(FINGERPRINT_BYTES, length)), (max(0, length - FINGERPRINT_BYTES), length)):
        for block in _blocks(file, counter, start, stop):
            hasher.update(block)
    return hasher.hexdigest()


class _Gathered:
    """The pieces of one line. The newline is not hashed: a last line without one is the same line when it gets it."""

    def __init__(self, chain: str) -> None:
        self.length = 0
        self._hasher = hashlib.sha256(chain.encode())
        self._pieces: list[bytes] = []

    def add(self, piece: bytes) -> None:
        self._hasher.update(piece)
        self.length += len(piece)
        if self.length > LONGEST_LINE:
            self._pieces.clear()
        elif piece:
            self._pieces.append(piece)

    def content(self) -> bytes | None:
        return b"".join(self._pieces) if self.length <= LONGEST_LINE else None

    def chain(self) -> str:
        return self._hasher.hexdigest()


def _blocks(file: io.FileIO, counter: ByteCounter, start: int, stop: int) -> Iterator[bytes]:
    while start < stop:
        file.seek(start)  # the caller may have read elsewhere meanwhile
        block = file.read(min(BLOCK_BYTES, stop - start))
        if not block:  # the file was cut short meanwhile: the next look finds it rewritten
            return
        start += len(block)
        counter.count += len(block)
        yield block
