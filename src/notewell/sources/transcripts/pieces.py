"""An open transcript and where reading stopped in, the messages after it out, in pieces that fit into memory."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import date, datetime

from notewell.sources.transcripts.lines import LONGEST_LINE, ByteCounter, Line, fingerprint, lines_of
from notewell.sources.transcripts.messages import Message, moment_of
from notewell.sources.transcripts.position import BEGINNING, Position
from notewell.sources.transcripts.records import NotARecord, message_of, record_in
from notewell.sources.transcripts.session_files import Part, element_in, is_session_file, part_of
from notewell.types import FileStamp, Piece, Problem, SpokenLine

# A piece becomes one transaction: large enough to write fast, small enough for 150 MB in all and a deadline in seconds.
PIECE_CHARS = 1_000_000  # of text: some 600 chunks
PIECE_BYTES = 16 * 1024 * 1024  # of the file, most of which may be tool results

Redact = Callable[[str], str]


@dataclass(slots=True)
class _Trouble:
    """Counts the lines that could not be read."""

    not_json: list[int] = field(default_factory=list)  # the first, and how many
    too_long: list[int] = field(default_factory=list)
    torn: bool = False
    no_array: bool = False

    def problems(self, path: str) -> tuple[Problem, ...]:
        reasons = [
            *_counted(self.not_json, "is no JSON record", "are no JSON records"),
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
        message = message_of(element_in(stripped) if self._is_session_file else record_in(stripped))
        return replace(message, text=self._redact(message.text)) if isinstance(message, Message) else None

    def _part(self, line: Line) -> Part:
        return part_of(line.content or b"", in_array=self.in_array)


def pieces_of(
    file: io.FileIO, path: str, position: Position, *, redact: Redact, counter: ByteCounter, from_start: bool
) -> Iterator[Piece]:
    """Yield what was said after `position`; the last piece says so, and there is always one."""
    info = os.fstat(file.fileno())
    stamp = FileStamp("sessions", path, info.st_size, info.st_mtime_ns)
    reader = LineReader(path, redact, in_array=position.in_array)
    trouble, gathered = _Trouble(), _Gathered(position)

    def piece(*, last: bool) -> Piece:
        reached = replace(
            gathered.position,
            in_array=reader.in_array,
            size=info.st_size,
            mtime_ns=info.st_mtime_ns,
            inode=info.st_ino,
            fingerprint=fingerprint(file, counter, gathered.position.bytes),
        )
        problems = trouble.problems(path) if last else ()
        return Piece(
            tuple(gathered.said), reached.as_text(), stamp, reached.chain, day_of(reached), last, from_start, problems
        )

    for line in lines_of(
        file, counter, start=position.bytes, stop=info.st_size, number=position.lines, chain=position.chain
    ):
        if reader.ends_before(line):
            break
        message, done_with = _read(line, reader, trouble)
        if not done_with:
            break
        if gathered.add(line, message):
            yield piece(last=False)
            gathered = _Gathered(gathered.position)
    trouble.no_array = is_session_file(path) and not reader.in_array and info.st_size > 0
    yield piece(last=True)


class _Gathered:
    """What was said since the last piece, and how far that is."""

    def __init__(self, position: Position) -> None:
        self.said: list[SpokenLine] = []
        self._began = position
        self._chars = 0
        self._last: Line | None = None
        self._last_at = position.last_at

    def add(self, line: Line, message: Message | None) -> bool:
        """Take in a line; say whether it is enough for a piece."""
        self._last = line
        if message is not None:
            self.said.append(SpokenLine(line.number, message.line, self._began.messages + len(self.said) + 1))
            self._chars += len(self.said[-1].text)
            at = moment_of(message.at)
            self._last_at = at.isoformat() if at else self._last_at
        return self._chars >= PIECE_CHARS or line.end - self._began.bytes >= PIECE_BYTES

    @property
    def position(self) -> Position:
        """Where reading stands after the last line taken in."""
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


def still_stands(file: io.FileIO, position: Position, counter: ByteCounter) -> bool:
    """Say whether what was read up to `position` is still what the file begins with.

    A file that grew is looked at where a rewrite would show: its identity and both ends. One that was touched without
    growing is compared in full.
    """
    info = os.fstat(file.fileno())
    if info.st_size < position.bytes or info.st_ino != position.inode:
        return False
    if fingerprint(file, counter, position.bytes) != position.fingerprint:
        return False
    if info.st_size == position.size and info.st_mtime_ns != position.mtime_ns:
        chain = BEGINNING.chain
        for line in lines_of(file, counter, start=0, stop=position.bytes, number=0, chain=chain):
            chain = line.chain
        return chain == position.chain
    return True


def after_late_newline(file: io.FileIO, position: Position, counter: ByteCounter) -> Position | None:
    """Return the position once the last line read has got its newline; None when the line itself went on."""
    if position.ended or os.fstat(file.fileno()).st_size == position.bytes:
        return position
    file.seek(position.bytes)
    counter.count += 1
    return replace(position, bytes=position.bytes + 1, ended=True) if file.read(1) == b"\n" else None


def day_of(position: Position) -> date | None:
    """Return the day of the last message where the reader is; None when no message tells its time."""
    if not position.last_at:
        return None
    try:
        return datetime.fromisoformat(position.last_at).astimezone().date()
    except (ValueError, OverflowError, OSError):  # the year 9999 in another time zone
        return None
