"""`notewell sessions`: look at the conversations of an agent, bring them in and out, and put them away."""

from __future__ import annotations

import glob
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from notewell import NotewellError, SessionInputError
from notewell.agents.documents import entry_document, flushed_document, imported_document, session_document
from notewell.agents.rendering import session_lines, session_list_lines
from notewell.cli.options import Chosen, common_options
from notewell.cli.output import print_json, print_lines, print_notes

if TYPE_CHECKING:
    from notewell.sessions import Imported, SessionEntry, SessionKind

_KINDS = click.Choice(["direct", "group"])


@click.group("sessions", epilog="Example: notewell sessions list")
def command() -> None:
    """The conversations of an agent: one JSON5 file each, that you may read and edit."""


@command.command("list", epilog="Example: notewell sessions list --kind group")
@click.option("--kind", type=_KINDS, help="Only direct conversations, or only those of groups.")
@click.option("--archived", is_flag=True, help="Those in the archive instead.")
@common_options
def list_(*, kind: SessionKind | None, archived: bool, chosen: Chosen) -> None:
    """List the sessions, the one that changed last first."""
    with chosen.memory() as memory:
        entries = memory.conversations.list(kind=kind, archived=archived)
    if chosen.as_json:
        print_json({"sessions": [entry_document(entry) for entry in entries]})
    else:
        print_lines(session_list_lines(entries))
    print_notes(
        f"{entry.damage}: run `notewell sessions repair {entry.session_id}`" for entry in entries if entry.damage
    )


@command.command("show", epilog="Example: notewell sessions show 7f3a --last 20")
@click.argument("session_id", metavar="ID")
@click.option("--last", type=click.IntRange(min=0), metavar="N", help="Only the last N messages.")
@common_options
def show(session_id: str, *, last: int | None, chosen: Chosen) -> None:
    """Show a conversation."""
    with chosen.memory() as memory:
        session = memory.conversations.get(session_id)
    if chosen.as_json:
        print_json(session_document(session, last=last))
    else:
        print_lines(session_lines(session, last=last))


@command.command("import", epilog="Example: notewell sessions import ~/.claude/projects/notes/*.jsonl")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("--id", "session_id", default="", metavar="ID", help="The session's id, for a single file.")
@click.option("--kind", type=_KINDS, help="What kind of conversation it is.  [default: as the file says, else direct]")
@common_options
def import_(files: tuple[str, ...], *, session_id: str, kind: SessionKind | None, chosen: Chosen) -> int:
    """Bring in transcripts: JSONL of OpenClaw, Claude Code, Codex, or of `notewell sessions export`."""
    files = _files_named(files)
    if session_id and len(files) > 1:
        raise SessionInputError("--id names one session, but there are several files", hint="import them one by one")
    done, failed = [], []
    with chosen.memory() as memory:
        from notewell.sessions.transfer import import_file

        for file in files:
            try:
                imported, entry = import_file(memory.conversations, Path(file), session_id=session_id, kind=kind)
                done.append((file, imported, entry))
            except (NotewellError, OSError) as error:
                if len(files) == 1:
                    raise
                failed.append((file, str(error)))
    if chosen.as_json:
        failures = [{"file": file, "reason": reason} for file, reason in failed]
        print_json({"imported": [imported_document(*each) for each in done], "failed": failures})
    else:
        print_lines(_imported_line(*each) for each in done)
    print_notes(f"{file}: {reason}" for file, reason in failed)
    return 1 if failed else 0


@command.command("export", epilog="Example: notewell sessions export 7f3a --output chat.jsonl")
@click.argument("session_id", metavar="ID")
@click.option("--output", "-o", type=click.Path(dir_okay=False), metavar="FILE", help="Write to it instead of stdout.")
@common_options
def export(session_id: str, *, output: str | None, chosen: Chosen) -> None:
    """Write a conversation as JSONL, one message a line, as OpenClaw does."""
    with chosen.memory() as memory:
        session = memory.conversations.get(session_id)
    from notewell.sessions import export_lines

    if output:
        text = "".join(f"{line}\n" for line in export_lines(session))
        Path(output).write_text(text, encoding="utf-8", newline="\n")
    if chosen.as_json:
        print_json({"sessionId": session.entry.session_id, "file": output} if output else session_document(session))
    elif output:
        print_lines([f"{session.entry.message_count:,} messages written to {output}"])
    else:
        print_lines(export_lines(session))


@command.command("index", epilog="Example: notewell sessions index")
@common_options
def index(*, chosen: Chosen) -> int:
    """Index what is new in the conversations, so that `search --source sessions` finds it."""
    from notewell.agents.documents import report_document
    from notewell.agents.rendering import report_lines
    from notewell.cli.cost_question import ask_about_cost
    from notewell.cli.progress import shown_progress

    with chosen.memory() as memory:
        paths = memory.files("sessions")
        ask_about_cost(memory, paths, force=False, batch=memory.settings.remote.batch.enabled)
        with shown_progress() as progress:
            report = memory.index(source="sessions", progress=progress)
    if chosen.as_json:
        print_json(report_document(report))
    else:
        print_lines(report_lines(report))
    print_notes(report.notes)
    print_notes(f"{problem.path or 'a chunk'}: {problem.reason}" for problem in report.problems)
    return 0 if report.complete else 1


@command.command("compact", epilog="Example: notewell sessions compact 7f3a --keep 20")
@click.argument("session_id", metavar="ID")
@click.option(
    "--keep", type=click.IntRange(min=0), default=20, show_default=True, metavar="N", help="Newest that stay."
)
@click.option("--summary", default="", metavar="TEXT", help="What takes the messages' place.  [default: made of them]")
@click.option("--no-flush", is_flag=True, help="Write nothing of it to today's note first.")
@common_options
def compact(session_id: str, *, keep: int, summary: str, no_flush: bool, chosen: Chosen) -> None:
    """Let a summary take the place of the oldest messages; what they said goes to today's note first.

    The messages themselves are kept as JSONL in the store's folder `compacted/`.
    """
    from notewell.sessions import plain_summary

    with chosen.memory() as memory:
        store = memory.conversations
        flushed = None if no_flush else memory.flush_session(session_id, keep_last=keep)
        going = max(0, len(store.get(session_id).messages) - keep) if flushed is None else flushed.through
        replaced = store.get(session_id).messages[:going]
        session = store.compact(session_id, summary or plain_summary(replaced), through=going)
    if chosen.as_json:
        told = flushed_document(flushed) if flushed else None
        print_json(
            {"sessionId": session.entry.session_id, "compacted": going, "kept": len(session.messages), "flush": told}
        )
    else:
        print_lines([f"{going:,} messages compacted, {len(session.messages):,} kept"])
        if flushed and flushed.path:
            print_lines([f"written to {flushed.path}"])
    print_notes([flushed.note] if flushed and flushed.note else [])


@command.command("archive", epilog="Example: notewell sessions archive 7f3a")
@click.argument("session_id", metavar="ID")
@click.option("--undo", is_flag=True, help="Bring it back.")
@common_options
def archive(session_id: str, *, undo: bool, chosen: Chosen) -> None:
    """Put a session away: it is kept and found, but no longer listed."""
    with chosen.memory() as memory:
        store = memory.conversations
        entry = store.unarchive(session_id) if undo else store.archive(session_id)
    if chosen.as_json:
        print_json(entry_document(entry))
    else:
        print_lines([f"{entry.session_id} is {'back' if undo else 'archived'}: {entry.session_file}"])


@command.command("delete", epilog="Example: notewell sessions delete 7f3a --yes")
@click.argument("session_id", metavar="ID")
@click.option("--yes", is_flag=True, help="Do not ask.")
@common_options
def delete(session_id: str, *, yes: bool, chosen: Chosen) -> None:
    """Delete a session and everything that was kept of it. `notewell forget --session` clears the index as well."""
    with chosen.memory() as memory:
        entry = None if yes else memory.conversations.entry(session_id)
        if entry and not _may_delete(entry):
            raise SessionInputError(f"session {entry.session_id!r} is still there", hint="say --yes to delete it")
        gone = memory.conversations.delete(session_id)
    if chosen.as_json:
        print_json({"deleted": list(gone)})
    else:
        print_lines([f"deleted {path}" for path in gone if not path.startswith(".")])


@command.command("repair", epilog="Example: notewell sessions repair 7f3a")
@click.argument("session_id", metavar="ID")
@common_options
def repair(session_id: str, *, chosen: Chosen) -> None:
    """Save what can be read of a damaged session; the damaged file is kept in the store's folder `damaged/`."""
    with chosen.memory() as memory:
        done = memory.conversations.repair(session_id)
    if chosen.as_json:
        print_json({"sessionId": session_id.lower(), "repaired": bool(done), "notes": list(done)})
    else:
        print_lines(done or [f"{session_id} is sound"])


def _files_named(names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the files that the names and patterns stand for: not every shell replaces a pattern by its files."""
    found: list[str] = []
    for name in names:
        path = Path(name).expanduser()
        is_pattern = glob.has_magic(name) and not path.exists()
        found += (is_pattern and sorted(glob.glob(str(path)))) or [name]  # noqa: PTH207 - Path.glob takes no absolute one
    return tuple(found)


def _may_delete(entry: SessionEntry) -> bool:
    if not sys.stdin.isatty():
        return False
    return click.confirm(f"delete {entry.session_id} with {entry.message_count:,} messages?", err=True)


def _imported_line(file: str, imported: Imported, entry: SessionEntry) -> str:
    left_out = ", ".join(f"{count:,} {reason}" for reason, count in sorted(imported.left_out.items()))
    return f"{entry.session_id}: {entry.message_count:,} messages of {file}" + (
        f"; left out: {left_out}" if left_out else ""
    )
