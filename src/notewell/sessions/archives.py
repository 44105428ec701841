"""Keeps the messages that summaries took the place of, so that each is kept once whenever the process is killed.

A session names its archives in `compactedFiles`. Compaction writes the archive as `compacted/<id>.<n>.pending`,
replaces the session's file by one that names it, and then renames it to `<id>.<n>.jsonl`. The step in the middle
decides: a pending archive that its session names is complete and gets its name, any other is debris and is deleted.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from notewell.errors import SessionInputError
from notewell.sessions.append_journal import move, replace_file
from notewell.sources.transcripts import PENDING
from notewell.sources.transcripts.messages import Message, message_from_json, message_to_json

ENDING = ".jsonl"
_NAME = re.compile(r"(.+)\.(\d+)(\.jsonl|\.pending)")  # ids that other programs gave may hold dots
_DRAFT = re.compile(_NAME.pattern + r"\.[^.]+\.tmp")

Unwanted = Callable[[str, int], bool]  # asked about a text and its time, in milliseconds since 1970


@dataclass(frozen=True, slots=True)
class Archives:
    """The archives of one session, in the folder `compacted` of the store. Change them under the session's lock."""

    folder: Path
    session_id: str

    def files(self) -> list[Path]:
        """Return the archives in their order, pending ones included."""
        return sorted(path for path in _files_in(self.folder) if owner_of_archive(path.name) == self.session_id)

    def begin(self, lines: Iterable[str], *, named: Collection[str]) -> str:
        """Write the lines to a new pending archive, and return the name that the session must give it."""
        taken = [int(_NAME.fullmatch(name)[2]) for name in named if _NAME.fullmatch(name)]  # type: ignore[index]
        taken += [int(path.name.split(".")[-2]) for path in self.files()]
        stem = f"{self.session_id}.{max(taken, default=0) + 1:04}"
        replace_file(self.folder / f"{stem}{PENDING}", "".join(f"{line}\n" for line in lines).encode())
        return f"{stem}{ENDING}"

    def settle(self, named: Collection[str]) -> None:
        """Finish pending archives that the session names, and delete the others."""
        for path in self.files():
            if path.suffix == PENDING:
                final = path.with_suffix(ENDING)
                if final.name in named:
                    move(path, final)
                else:
                    path.unlink(missing_ok=True)

    def rescue(self) -> None:
        """Keep pending archives of a session whose names are lost; `adopt` finds out what it holds itself."""
        for path in self.files():
            if path.suffix == PENDING:
                move(path, path.with_suffix(ENDING))

    def unnamed(self, named: Collection[str]) -> list[Path]:
        """Return the archives that the session does not name: older releases wrote no names."""
        return [path for path in self.files() if path.suffix == ENDING and path.name not in named]

    def adopt(self, named: Collection[str], messages: Sequence[Message]) -> tuple[str, ...]:
        """Name every archive, and take from those without a name what the session or a later archive holds as well.

        A release that wrote no names archived messages again after each kill, every time under another number.
        """
        unnamed = set(self.unnamed(named))
        seen = {key_of(message) for message in messages}
        kept: list[str] = []
        for path in reversed([path for path in self.files() if path.suffix == ENDING]):
            lines = _lines(path)
            found = [_archived(line) for line in lines]
            if path in unnamed:
                own = [
                    line
                    for line, message in zip(lines, found, strict=True)
                    if message is None or key_of(message) not in seen
                ]
                if not any(map(_archived, own)):
                    path.unlink()
                    continue
                if len(own) < len(lines):
                    replace_file(path, "".join(f"{line}\n" for line in own).encode())
            seen.update(key_of(message) for message in found if message is not None)
            kept.append(path.name)
        return tuple(reversed(kept))


def pending_owners(folder: Path) -> set[str]:
    """Return the sessions that have pending archives in the folder."""
    return {owner_of_archive(path.name) for path in _files_in(folder) if path.suffix == PENDING}


def owner_of_archive(name: str) -> str:
    """Return the session that an archive or a draft of one belongs to; "" where the name is that of something else."""
    found = _NAME.fullmatch(name) or _DRAFT.fullmatch(name.removeprefix("."))
    return found[1] if found else ""


def remove_lines(path: Path, unwanted: Unwanted, *, dry_run: bool) -> int:
    """Remove unwanted messages from an archive, and return how many."""
    lines = path.read_text(encoding="utf-8").split("\n")
    kept = [line for line in lines if not (line.strip() and _is_unwanted(line, unwanted))]
    if len(kept) < len(lines) and not dry_run:
        replace_file(path, "\n".join(kept).encode())
    return len(lines) - len(kept)


def everything_in(message: Message) -> str:
    """Return text, thoughts, tool calls and fields of others."""
    return f"{message.text}\n{json.dumps(message_to_json(message), ensure_ascii=False, default=str)}"


def _is_unwanted(line: str, unwanted: Unwanted) -> bool:
    message = _message(line)
    return unwanted(line, 0) if message is None else unwanted(everything_in(message), message.timestamp)


def _archived(line: str) -> Message | None:
    """Return the message that a line archives; None for the line of the session, summaries, and what is unreadable."""
    try:
        values = json.loads(line)
    except ValueError:
        return None
    return _message(line) if isinstance(values, dict) and "message" in values else None


def _message(line: str) -> Message | None:
    """Return the message or summary of a line; None for the line of the session and what cannot be read."""
    try:
        values = json.loads(line)
        return message_from_json(values.get("message", values) if isinstance(values, dict) else values)
    except (ValueError, SessionInputError):
        return None


def key_of(message: Message) -> str:
    """Return by what a message is recognized."""
    return message.id or json.dumps(message_to_json(message), sort_keys=True, default=str)


def _lines(path: Path) -> list[str]:
    return [line for line in path.read_text(encoding="utf-8").split("\n") if line.strip()]


def _files_in(folder: Path) -> list[Path]:
    try:
        found = [path for path in folder.iterdir() if _NAME.fullmatch(path.name)]
        return [path for path in found if path.is_file() and not path.is_symlink()]
    except (FileNotFoundError, NotADirectoryError):
        return []
