"""Reads transcripts from where reading stopped, in pieces that fit into memory."""

from __future__ import annotations

import hashlib
import io
import json
import os
import shlex
import time
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, date, datetime
from typing import BinaryIO, NamedTuple

from notewell.errors import SessionInputError
from notewell.sources.transcripts import session_at
from notewell.sources.transcripts.messages import (
    LeftOut,
    Message,
    NotARecord,
    message_from_json,
    record_in,
    spoken,
    spoken_in,
)
from notewell.sources.transcripts.session_files import (
    NumberedMessage,
    SessionText,
    end_of_messages,
    is_session_file,
    read_messages,
)
from notewell.sources.walk import stamp_from
from notewell.types import Piece, Problem, SpokenLine

BLOCK_BYTES = 256 * 1024  # larger reads are no faster and take more memory
LONGEST_LINE = 4 * 1024 * 1024  # bytes; longer ones are images and tool output, and JSON takes ten times its size
FINGERPRINT_BYTES = 4096  # at either end: a rewrite changes at least a page

# A piece becomes one transaction: large enough to write fast, small enough for 150 MB in all and a deadline in seconds.
PIECE_CHARS = 1_000_000  # of text: some 600 chunks
PIECE_BYTES = 16 * 1024 * 1024  # of the file, most of which may be tool results

APPEND_S = 0.02  # an append to a session file takes about 8 ms, most of it to reach the disk


@dataclass(slots=True)
class ByteCounter:
    """Counts the bytes read from files."""

    count: int = 0


# --- lines -------------------------------------------------------------------------------------


class Line(NamedTuple):
    """One line of a file, and the position after it."""

    number: int  # 1-based
    content: bytes | None  # without its newline; None when it is too long to be read
    end: int  # the byte after its newline
    chain: str  # hash of all bytes up to there, line by line
    ended: bool = True  # False for the last line of a file that ends without a newline


def lines_of(
    file: BinaryIO, counter: ByteCounter, *, stop: int, start: int = 0, number: int = 0, chain: str = ""
) -> Iterator[Line]:
    """Yield the lines between two bytes, one at a time; `number` lines with the hash `chain` came before."""
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


def count_lines(file: BinaryIO, counter: ByteCounter, *, start: int, stop: int) -> int:
    """Return how many lines end between two bytes."""
    return sum(block.count(b"\n") for block in _blocks(file, counter, start, stop))


def fingerprint(file: BinaryIO, counter: ByteCounter, length: int) -> str:
    """Return a hash of both ends of the first `length` bytes."""
    hasher = hashlib.sha256()
    for start, stop in ((0, min(FINGERPRINT_BYTES, length)), (max(0, length - FINGERPRINT_BYTES), length)):
        for block in _blocks(file, counter, start, stop):
            hasher.update(block)
    return hasher.hexdigest()


class _GatheredLine:
    """The parts of one line. The newline is not hashed, so that it may be added to the last line later."""

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


def _blocks(file: BinaryIO, counter: ByteCounter, start: int, stop: int) -> Iterator[bytes]:
    while start < stop:
        file.seek(start)  # the caller may have read elsewhere
        block = file.read(min(BLOCK_BYTES, stop - start))
        if not block:  # the file was truncated: the next run finds it rewritten
            return
        start += len(block)
        counter.count += len(block)
        yield block


# --- positions ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Position:
    """How far a transcript has been read, with what is needed to see whether it was only appended to since."""

    bytes: int = 0  # all complete lines up to here are read
    lines: int = 0
    messages: int = 0
    chain: str = ""  # hash of those bytes, line by line
    ended: bool = True  # False: the last line read has no newline yet
    in_array: bool = False  # among the messages of a session file, which go on here
    last_at: str = ""  # time of the last message, ISO; empty if unknown
    size: int = 0  # of the file when it was read
    mtime_ns: int = 0
    ctime_ns: int = 0
    inode: int = 0  # a different one: the file was replaced, not appended to
    fingerprint: str = ""  # hash of both ends of what was read
    problem: str = ""  # why a session file cannot be read

    def as_text(self) -> str:
        """Return the position as it is stored in the index."""
        return json.dumps(asdict(self))

    @classmethod
    def from_text(cls, text: str) -> Position | None:
        """Return the position; None if the text is invalid: the transcript is then read from the beginning."""
        try:
            return cls(**json.loads(text))
        except (TypeError, ValueError):
            return None

    @property
    def day(self) -> date | None:
        """The day of the last message; None if unknown."""
        try:
            return datetime.fromisoformat(self.last_at).astimezone().date() if self.last_at else None
        except (ValueError, OverflowError, OSError):  # the year 9999 in another time zone
            return None

    def is_valid(self, file: BinaryIO, counter: ByteCounter) -> bool:
        """Return whether the file still begins with what was read.

        If the file grew, its identity and both ends are compared; if it was touched without growing, all of it.
        """
        info = os.fstat(file.fileno())
        if info.st_size < self.bytes or info.st_ino != self.inode:
            return False
        if fingerprint(file, counter, self.bytes) != self.fingerprint:
            return False
        if info.st_size == self.size and (info.st_mtime_ns, info.st_ctime_ns) != (self.mtime_ns, self.ctime_ns):
            chain = ""
            for line in lines_of(file, counter, stop=self.bytes):
                chain = line.chain
            return chain == self.chain
        return True

    def after_late_newline(self, file: BinaryIO, counter: ByteCounter) -> Position | None:
        """Return the position after the newline of the last line, if it was added; None if the line itself grew."""
        if self.ended or os.fstat(file.fileno()).st_size == self.bytes:
            return self
        file.seek(self.bytes)
        counter.count += 1
        return replace(self, bytes=self.bytes + 1, ended=True) if file.read(1) == b"\n" else None


# --- pieces ------------------------------------------------------------------------------------

Spoken = tuple[Line, list[Message]]  # a line, and what users and assistants say on it


class PieceReader:
    """Reads one open transcript."""

    def __init__(self, file: BinaryIO, path: str, counter: ByteCounter) -> None:
        from notewell.text.redaction import redact  # compiles its patterns

        self._file = file
        self._path = path
        self._redact = redact
        self._counter = counter
        self._info = os.fstat(file.fileno())

    def pieces(self, position: str | None) -> Iterator[Piece]:
        """Yield what was said after `position`, or from the beginning if the file was not only appended to.

        There is always a last piece, marked as such.
        """
        known = Position.from_text(position) if position else None
        if known:
            is_valid = known.is_valid(self._file, self._counter)
            known = known.after_late_newline(self._file, self._counter) if is_valid else None
        if is_session_file(self._path):
            yield from self._session_pieces(known)
        else:
            trouble = _Trouble()
            yield from self._gathered(known, self._jsonl_lines(known or Position(), trouble), trouble)

    def messages(self, first_line: int) -> Iterator[list[Message]]:
        """Yield the messages of every line from `first_line` up to the last message."""
        if is_session_file(self._path):
            _, session = self._read_session()
            by_line = self._spoken_by_line(session.messages)
            for number in range(first_line, max(by_line, default=0) + 1):
                yield by_line.get(number, [])
            return
        for line, said in self._jsonl_lines(Position(), _Trouble(), first_line):
            if line.number >= first_line:
                yield said

    # --- JSONL -------------------------------------------------------------------------------

    def _jsonl_lines(self, known: Position, trouble: _Trouble, first_line: int = 1) -> Iterator[Spoken]:
        """Yield complete lines, those before `first_line` without messages; an incomplete last line waits."""
        for line in lines_of(
            self._file, self._counter, start=known.bytes, stop=self._info.st_size, number=known.lines, chain=known.chain
        ):
            stripped = (line.content or b"").strip().removeprefix(b"\xef\xbb\xbf")
            said: list[Message] = []
            try:
                if stripped and line.number >= first_line:
                    said = self._clean(spoken_in(record_in(stripped)))
                elif line.content is None:
                    trouble.add(trouble.too_long, line)
            except NotARecord:
                trouble.add(trouble.not_json, line)
            if trouble.torn or not (line.ended or stripped):
                return
            yield line, said

    # --- session files -----------------------------------------------------------------------

    def _session_pieces(self, known: Position | None) -> Iterator[Piece]:
        """Read only what was appended if the file is in the session store's layout, else the whole file."""
        end, looked_at = end_of_messages(self._file, self._info.st_size)
        self._counter.count += looked_at
        stop = self._info.st_size if end is None else end
        if known and known.problem and (known.size, known.mtime_ns) != (self._info.st_size, self._info.st_mtime_ns):
            known = None
        added: list[Spoken] | None = [] if known and known.bytes == stop else None
        if known and added is None and known.in_array and end is not None:
            added = self._appended(known, stop)
        if known and added is not None:
            yield from self._gathered(known, added, in_array=known.in_array, problem=known.problem)
            return
        data, session = self._read_session()
        end, _ = end_of_messages(io.BytesIO(data), len(data))
        stop = len(data) if end is None else end
        problem = f"cannot be read as a session: {session.problem}" if session.problem else ""
        name = session_at(self._path)
        if session.is_corrupt and name:
            problem += f"; run `notewell sessions repair {shlex.quote(name)}`"
        by_line = self._spoken_by_line(session.messages)
        lines = ((line, by_line.get(line.number, [])) for line in lines_of(io.BytesIO(data), ByteCounter(), stop=stop))
        yield from self._gathered(None, lines, in_array=end is not None, problem=problem)

    def _appended(self, known: Position, stop: int) -> list[Spoken] | None:
        """Return the appended lines; None if they are not one message a line."""
        added: list[Spoken] = []
        for line in lines_of(
            self._file, self._counter, start=known.bytes, stop=stop, number=known.lines, chain=known.chain
        ):
            element = (line.content or b"").strip()
            said: list[Message] = []
            try:
                if not element.startswith(b"//"):
                    said = self._clean(spoken(message_from_json(record_in(element.removesuffix(b",")))))
            except (NotARecord, SessionInputError):
                return None
            added.append((line, said))
        return added

    def _spoken_by_line(self, found: Iterable[NumberedMessage]) -> dict[int, list[Message]]:
        by_line: dict[int, list[Message]] = {}
        for line, message in found:
            by_line.setdefault(line, []).extend(self._clean(spoken(message)))
        return by_line

    def _read_session(self) -> tuple[bytes, SessionText]:
        """Return the whole file and its messages; a corrupt file is read again in case an append is in progress."""
        before = None
        while True:
            self._info = os.fstat(self._file.fileno())
            data = b"".join(_blocks(self._file, self._counter, 0, self._info.st_size))
            session = read_messages(data)
            if not session.is_corrupt or data == before:
                return data, session
            before = data
            time.sleep(APPEND_S)

    # --- both --------------------------------------------------------------------------------

    def _clean(self, message: Message | LeftOut) -> list[Message]:
        """Return the message with its secrets redacted; nothing if it is left out."""
        if not isinstance(message, Message):
            return []
        text = self._redact(message.text).text
        return [message if text == message.content else Message(message.role, text, message.timestamp)]

    def _gathered(
        self,
        known: Position | None,
        lines: Iterable[Spoken],
        trouble: _Trouble | None = None,
        *,
        in_array: bool = False,
        problem: str = "",
    ) -> Iterator[Piece]:
        """Yield the lines in pieces. A file with a problem is stored without a time, so that every run checks it."""
        info = self._info
        stamp = stamp_from("sessions", self._path, info)
        if problem:
            stamp = stamp._replace(mtime_ns=0)
        gathered = _GatheredPiece(known or Position())

        def piece(*, last: bool) -> Piece:
            reached = replace(
                gathered.position,
                in_array=in_array,
                size=info.st_size,
                mtime_ns=info.st_mtime_ns,
                ctime_ns=info.st_ctime_ns,
                inode=info.st_ino,
                fingerprint=fingerprint(self._file, self._counter, gathered.position.bytes),
                problem=problem,
            )
            reasons = [problem] if problem else trouble.reasons() if trouble else []
            return Piece(
                tuple(gathered.said),
                reached.as_text(),
                stamp,
                reached.chain,
                reached.day,
                last,
                from_start=known is None,
                problems=tuple(Problem(self._path, reason) for reason in reasons if last),
            )

        for line, said in lines:
            if gathered.add(line, said):
                yield piece(last=False)
                gathered = _GatheredPiece(gathered.position)
        yield piece(last=True)


@dataclass(slots=True)
class _Trouble:
    """Counts the lines that could not be read."""

    not_json: list[int] = field(default_factory=list)
    too_long: list[int] = field(default_factory=list)
    torn: bool = False

    def add(self, kind: list[int], line: Line) -> None:
        """Count a line; the last one may just be incomplete."""
        if line.ended:
            kind.append(line.number)
        else:
            self.torn = True

    def reasons(self) -> list[str]:
        reasons = [
            *_counted(self.not_json, "is not a JSON record", "are not JSON records"),
            *_counted(self.too_long, *(f"{verb} longer than {LONGEST_LINE // 2**20} MB" for verb in ("is", "are"))),
        ]
        if self.torn:
            reasons.append("the last line is still incomplete")
        return ["left out: " + "; ".join(reasons)] if reasons else []


def _counted(numbers: list[int], one: str, many: str) -> list[str]:
    if len(numbers) > 1:
        return [f"{len(numbers)} lines {many} (line {numbers[0]} first)"]
    return [f"line {number} {one}" for number in numbers]


class _GatheredPiece:
    """What was said since the last piece, and the position after it."""

    def __init__(self, position: Position) -> None:
        self.said: list[SpokenLine] = []
        self._began = position
        self._chars = 0
        self._last: Line | None = None
        self._last_time = 0  # of the last message that states one

    def add(self, line: Line, said: list[Message]) -> bool:
        """Add a line; returns whether the piece is full."""
        self._last = line
        for message in said:
            self.said.append(SpokenLine(line.number, message.line, self._began.messages + len(self.said) + 1))
            self._chars += len(self.said[-1].text)
            self._last_time = message.timestamp or self._last_time
        return self._chars >= PIECE_CHARS or line.end - self._began.bytes >= PIECE_BYTES

    @property
    def position(self) -> Position:
        """The position after the last line added."""
        if self._last is None:
            return self._began
        return replace(
            self._began,
            bytes=self._last.end,
            lines=self._last.number,
            chain=self._last.chain,
            ended=self._last.ended,
            messages=self._began.messages + len(self.said),
            last_at=_iso(self._last_time) or self._began.last_at,
        )


def _iso(timestamp: int) -> str:
    try:
        return datetime.fromtimestamp(timestamp / 1000, UTC).isoformat() if timestamp else ""
    except (ValueError, OverflowError, OSError):
        return ""
