"""Reads transcripts on from where reading stopped, in pieces that fit into memory."""

from __future__ import annotations

import hashlib
import io
import json
import os
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, date, datetime
from typing import NamedTuple

from notewell.sources.transcripts.formats import NotARecord, record_in, spoken_in
from notewell.sources.transcripts.messages import Message
from notewell.sources.transcripts.session_files import Part, element_in, is_session_file, part_of
from notewell.types import FileStamp, Piece, Problem, SpokenLine

BLOCK_BYTES = 256 * 1024  # larger reads are no faster; the rest of a block costs memory
LONGEST_LINE = 4 * 1024 * 1024  # bytes; longer ones are pictures and dumps of tools, and JSON takes ten times its size
FINGERPRINT_BYTES = 4096  # at either end: a page of a file is what a rewrite changes at least

# A piece becomes one transaction: large enough to write fast, small enough for 150 MB in all and a deadline in seconds.
PIECE_CHARS = 1_000_000  # of text: some 600 chunks
PIECE_BYTES = 16 * 1024 * 1024  # of the file, most of which may be tool results

Redact = Callable[[str], str]


@dataclass(slots=True)
class ByteCounter:
    """Counts what is read from files, to show what a run costs."""

    count: int = 0


# --- lines -------------------------------------------------------------------------------------


class Line(NamedTuple):
    """One line of a file, with where reading stands after it."""

    number: int  # 1-based
    content: bytes | None  # without its newline; None when it is too long to be read
    end: int  # the byte after its newline
    chain: str  # hash of all bytes up to there, line by line
    ended: bool = True  # False for the last line of a file that ends without a newline


def lines_of(
    file: io.FileIO, counter: ByteCounter, *, stop: int, start: int = 0, number: int = 0, chain: str = ""
) -> Iterator[Line]:
    """Yield the lines from byte `start` to byte `stop`; `number` lines came before, and `chain` is their hash.

    Never more than one line is held in memory.
    """
    gathered = _GatheredLine(chain)
    end = start
    for block in _blocks(file, counter, start, stop):
        at = 0
        while (newline := block.find(b"\n", at)) >= 0:
            gathered.add(block[at:newline])
            number, end, at = number + 1, end + gathered.length + 1, newline + 1
            chain = gathered.chain()
            yield Line(number, gathered.content(), end, chain)
            gathered = _GatheredLine(chain)
        gathered.add(block[at:])
    if gathered.length:
        yield Line(number + 1, gathered.content(), end + gathered.length, gathered.chain(), ended=False)


def count_lines(file: io.FileIO, counter: ByteCounter, *, start: int, stop: int) -> int:
    """Return how many lines end between two bytes."""
    return sum(block.count(b"\n") for block in _blocks(file, counter, start, stop))


def fingerprint(file: io.FileIO, counter: ByteCounter, length: int) -> str:
    """Return a hash of both ends of the first `length` bytes, to see whether they are still the same."""
    hasher = hashlib.sha256()
    for start, stop in ((0, min(FINGERPRINT_BYTES, length)), (max(0, length - FINGERPRINT_BYTES), length)):
        for block in _blocks(file, counter, start, stop):
            hasher.update(block)
    return hasher.hexdigest()


class _GatheredLine:
    """The parts of one line. The newline is not hashed: a last line without one is the same line when it gets it."""

    def __init__(self, chain: str) -> None:
        self.length = 0
        self._hasher = hashlib.sha256(chain.encode())
        self._parts: list[bytes] = []

    def add(self, part: bytes) -> None:
        self._hasher.update(part)
        self.length += len(part)
        if self.length > LONGEST_LINE:
            self._parts.clear()
        elif part:
            self._parts.append(part)

    def content(self) -> bytes | None:
        return b"".join(self._parts) if self.length <= LONGEST_LINE else None

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


# --- positions ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Position:
    """How far a transcript has been read, and what tells whether it was only appended to since."""

    bytes: int = 0  # all complete lines up to here are read
    lines: int = 0
    messages: int = 0
    chain: str = ""  # hash of those bytes, line by line
    ended: bool = True  # False: the last line read has no newline yet
    in_array: bool = False  # of one of the session store's files: the messages have begun
    last_at: str = ""  # when the last message was said, ISO; empty when no message tells
    size: int = 0  # of the file when it was read
    mtime_ns: int = 0
    inode: int = 0  # another one: the file was replaced, not appended to
    fingerprint: str = ""  # hash of both ends of what was read

    def as_text(self) -> str:
        """Return the position as the index keeps it."""
        return json.dumps(asdict(self))

    @classmethod
    def from_text(cls, text: str) -> Position | None:
        """Return the position, or None when the text is not one: the transcript is then read from its beginning."""
        try:
            return cls(**json.loads(text))
        except (TypeError, ValueError):
            return None

    @property
    def day(self) -> date | None:
        """The day of the last message; None when no message tells its time."""
        try:
            return datetime.fromisoformat(self.last_at).astimezone().date() if self.last_at else None
        except (ValueError, OverflowError, OSError):  # the year 9999 in another time zone
            return None

    def is_valid(self, file: io.FileIO, counter: ByteCounter) -> bool:
        """Say whether what was read up to here is still what the file begins with.

        A file that grew is looked at where a rewrite would show: its identity and both ends. One that was touched
        without growing is compared in full.
        """
        info = os.fstat(file.fileno())
        if info.st_size < self.bytes or info.st_ino != self.inode:
            return False
        if fingerprint(file, counter, self.bytes) != self.fingerprint:
            return False
        if info.st_size == self.size and info.st_mtime_ns != self.mtime_ns:
            chain = ""
            for line in lines_of(file, counter, stop=self.bytes):
                chain = line.chain
            return chain == self.chain
        return True

    def after_late_newline(self, file: io.FileIO, counter: ByteCounter) -> Position | None:
        """Return the position once the last line read has got its newline; None when the line itself went on."""
        if self.ended or os.fstat(file.fileno()).st_size == self.bytes:
            return self
        file.seek(self.bytes)
        counter.count += 1
        return replace(self, bytes=self.bytes + 1, ended=True) if file.read(1) == b"\n" else None


def resume(file: io.FileIO, position: str | None, counter: ByteCounter) -> Position | None:
    """Return where to read on; None when there is no position, or the file was not only appended to since."""
    known = Position.from_text(position) if position else None
    if known is None or not known.is_valid(file, counter):
        return None
    return known.after_late_newline(file, counter)


# --- pieces ------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Trouble:
    """Counts the lines that could not be read."""

    not_json: list[int] = field(default_factory=list)  # the first, and how many
    too_long: list[int] = field(default_factory=list)
    torn: bool = False
    no_array: bool = False

    def problems(self, path: str) -> tuple[Problem, ...]:
        reasons = [
            *_counted(self.not_json, "is not a JSON record", "are not JSON records"),
            *_counted(self.too_long, *(f"{verb} longer than {LONGEST_LINE // 2**20} MB" for verb in ("is", "are"))),
        ]
        if self.no_array:
            reasons.append("its messages do not stand one a line; the next append to the session puts them in order")
        if self.torn:
            reasons.append("the last line is incomplete and waits for its end")
        return (Problem(path, "left out: " + "; ".join(reasons)),) if reasons else ()


def _counted(numbers: list[int], one: str, many: str) -> list[str]:
    if not numbers:
        return []
    if len(numbers) == 1:
        return [f"line {numbers[0]} {one}"]
    return [f"{len(numbers)} lines {many} (line {numbers[0]} first)"]


class LineReader:
    """Reads the lines of one transcript in order; it knows where the messages of a session file begin and end."""

    def __init__(self, path: str, redact: Redact, *, in_array: bool = False) -> None:
        self._redact = redact
        self._is_session_file = is_session_file(path)
        self.in_array = in_array

    @property
    def may_skip(self) -> bool:
        """Whether lines need not be read that nobody asks for."""
        return self.in_array or not self._is_session_file

    def ends_before(self, line: Line) -> bool:
        """Say whether the messages of a session file end before this line."""
        return self._is_session_file and self._part(line) is Part.END

    def message_in(self, line: Line) -> Message | None:
        """Return the message of a line with its secrets marked; None when it holds none. Raises NotARecord."""
        stripped = (line.content or b"").strip().removeprefix(b"\xef\xbb\xbf")
        if not stripped:
            return None
        if self._is_session_file:
            part = self._part(line)
            self.in_array = self.in_array or part is Part.BEGIN
            if part is not Part.ELEMENT:
                return None
        message = spoken_in(element_in(stripped) if self._is_session_file else record_in(stripped))
        return replace(message, content=self._redact(message.text)) if isinstance(message, Message) else None

    def _part(self, line: Line) -> Part:
        return part_of(line.content or b"", in_array=self.in_array)


def pieces_of(
    file: io.FileIO, path: str, position: Position | None, *, redact: Redact, counter: ByteCounter
) -> Iterator[Piece]:
    """Yield what was said after `position`, or from the beginning; the last piece says so, and there is always one."""
    info = os.fstat(file.fileno())
    stamp = FileStamp("sessions", path, info.st_size, info.st_mtime_ns)
    known = position or Position()
    reader = LineReader(path, redact, in_array=known.in_array)
    trouble, gathered = _Trouble(), _GatheredPiece(known)

    def piece(*, last: bool) -> Piece:
        reached = replace(
            gathered.position,
            in_array=reader.in_array,
            size=info.st_size,
            mtime_ns=info.st_mtime_ns,
            inode=info.st_ino,
            fingerprint=fingerprint(file, counter, gathered.position.bytes),
        )
        return Piece(
            tuple(gathered.said),
            reached.as_text(),
            stamp,
            reached.chain,
            reached.day,
            last,
            from_start=position is None,
            problems=trouble.problems(path) if last else (),
        )

    for line in lines_of(file, counter, start=known.bytes, stop=info.st_size, number=known.lines, chain=known.chain):
        if reader.ends_before(line):
            break
        message, done_with = _read(line, reader, trouble)
        if not done_with:
            break
        if gathered.add(line, message):
            yield piece(last=False)
            gathered = _GatheredPiece(gathered.position)
    trouble.no_array = is_session_file(path) and not reader.in_array and info.st_size > 0
    yield piece(last=True)


class _GatheredPiece:
    """What was said since the last piece, and how far that is."""

    def __init__(self, position: Position) -> None:
        self.said: list[SpokenLine] = []
        self._began = position
        self._chars = 0
        self._last: Line | None = None
        self._last_at = position.last_at

    def add(self, line: Line, message: Message | None) -> bool:
        """Add a line; say whether it is enough for a piece."""
        self._last = line
        if message is not None:
            self.said.append(SpokenLine(line.number, message.line, self._began.messages + len(self.said) + 1))
            self._chars += len(self.said[-1].text)
            self._last_at = _iso(message.timestamp) or self._last_at
        return self._chars >= PIECE_CHARS or line.end - self._began.bytes >= PIECE_BYTES

    @property
    def position(self) -> Position:
        """Where reading stands after the last line added."""
        if self._last is None:
            return self._began
        return replace(
            self._began,
            bytes=self._last.end,
            lines=self._last.number,
            chain=self._last.chain,
            ended=self._last.ended,
            messages=self._began.messages + len(self.said),
            last_at=self._last_at,
        )


def _iso(timestamp: int) -> str:
    try:
        return datetime.fromtimestamp(timestamp / 1000, UTC).isoformat() if timestamp else ""
    except (ValueError, OverflowError, OSError):
        return ""


def _read(line: Line, reader: LineReader, trouble: _Trouble) -> tuple[Message | None, bool]:
    """Return the message of a line, and whether the line is done with; a torn last line is not."""
    try:
        message = reader.message_in(line)
    except NotARecord:
        if line.ended:
            trouble.not_json.append(line.number)
        else:
            trouble.torn = True
        return None, line.ended
    if line.content is None:
        if line.ended:
            trouble.too_long.append(line.number)
        else:
            trouble.torn = True
        return None, line.ended
    return message, line.ended or bool(line.content.strip())
