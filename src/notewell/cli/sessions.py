"""The commands of `notewell sessions`."""

from __future__ import annotations

import glob
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from notewell import NotewellError, SessionInputError
from notewell.agents.documents import entry_document, flushed_document, imported_document, session_document
from notewell.agents.rendering import session_lines, session_list_lines
from notewell.cli.options import Chosen, common_options
from notewell.cli.terminal import confirm, print_notes, yes_or_no

if TYPE_CHECKING:
    from notewell.sessions import Imported, SessionEntry, SessionKind

_KINDS = click.Choice(["direct", "group"])


class _IdCommand(click.Command):
    """A command whose ID may be a negative number, such as a Telegram group's."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, [*args])
        except click.NoSuchOption as error:
            if not error.option_name.removeprefix("-").isdigit():
                raise
            ctx.ignore_unknown_options = True
            return super().parse_args(ctx, args)


class _SessionsGroup(click.Group):
    command_class = _IdCommand


@click.group("sessions", cls=_SessionsGroup, epilog="Example: notewell sessions list")
def sessions() -> None:
    """Manage an agent's conversations.

    Each is a JSON5 file that you can read and edit.
    """


@sessions.command("list", epilog="Example: notewell sessions list --kind group")
@click.option("--kind", type=_KINDS, help="List only conversations of this kind.")
@click.option("--archived", is_flag=True, help="List archived sessions instead.")
@common_options
def list_(*, kind: SessionKind | None, archived: bool, chosen: Chosen) -> None:
    """List the sessions, most recently changed first."""
    with chosen.memory() as memory:
        entries = memory.conversations.list(kind=kind, archived=archived)
        others = memory.settings.sessions.paths
    chosen.print({"sessions": [entry_document(entry) for entry in entries]}, session_list_lines(entries))
    print_notes(
        f"{entry.damage}: run `notewell sessions repair {shlex.quote(entry.session_id)}`"
        for entry in entries
        if entry.damage
    )
    if others and not entries and not chosen.as_json:
        print_notes(["`notewell list --source sessions` lists the conversations of other programs"])


@sessions.command("show", epilog="Example: notewell sessions show 7f3a --last 20")
@click.argument("session_id", metavar="ID")
@click.option("--last", type=click.IntRange(min=0), metavar="N", help="Show only the last N messages.")
@common_options
def show(session_id: str, *, last: int | None, chosen: Chosen) -> None:
    """Show a conversation."""
    with chosen.memory() as memory:
        session = memory.conversations.get(session_id)
    chosen.print(session_document(session, last=last), session_lines(session, last=last))


@sessions.command("import", epilog="Example: notewell sessions import ~/.claude/projects/notes")
@click.argument("files", nargs=-1, required=True, metavar="PATH...")
@click.option("--id", "session_id", default="", metavar="ID", help="Id of the session, for a single file.")
@click.option("--kind", type=_KINDS, help="Kind of conversation.  [default: as the file says, else direct]")
@click.option("--search/--no-search", default=None, help="Search conversations from now on, or keep them only.")
@common_options
def import_(
    files: tuple[str, ...], *, session_id: str, kind: SessionKind | None, search: bool | None, chosen: Chosen
) -> int:
    """Import transcripts and session files, or all that a folder holds.

    Reads JSONL of OpenClaw, Claude Code, Codex and `notewell sessions export`, and session files (JSON5, JSON). Of a
    conversation that is stored already only the new messages are imported. You are asked whether to search
    conversations; the answer is kept in your settings file.
    """
    files = _expanded(files)
    if session_id and len(files) > 1:
        raise SessionInputError("--id names one session, but there are several files", hint="import them one by one")
    done, failed = [], []
    with chosen.memory() as memory:
        from notewell.sessions import import_file

        for file in files:
            try:
                imported, entry = import_file(memory.conversations, Path(file), session_id=session_id, kind=kind)
                done.append((file, imported, entry))
            except (NotewellError, OSError) as error:
                if len(files) == 1:
                    raise
                failed.append((file, str(error)))
    failures = [{"file": file, "reason": reason} for file, reason in failed]
    document = {"imported": [imported_document(*each) for each in done], "failed": failures}
    chosen.print(document, (_imported_line(*each) for each in done))
    print_notes(f"{file}: {reason}" for file, reason in failed)
    if done and search is not False:
        print_notes(make_searchable(chosen, ask=search is None))
    return 1 if failed else 0


def make_searchable(chosen: Chosen, start: Path | None = None, *, ask: bool) -> list[str]:
    """Include conversations in search if the user wants it, and return notes about that.

    On a terminal the user is asked; elsewhere they are included unless `sources` is set.
    """
    from notewell.settings.edit import search_conversations

    resolved = chosen.resolved(chosen.folder(start))
    if "sessions" in resolved.settings.sources:
        return []
    decided = resolved.origins["sources"] != "default"
    if ask and sys.stdin.isatty() and sys.stderr.isatty():
        wanted = yes_or_no("Search conversations, too?", default=True)
    else:
        wanted = not ask or not decided
    if not wanted:
        return ["they are kept, but not searched: run `notewell sessions enable`"]
    try:
        file, lines = search_conversations()
    except NotewellError as error:
        return [f"they are kept, but not searched: {error.message}; {error.hint}"]
    return [f"conversations are searched from now on: {'; '.join(lines)} in {file}"]


@sessions.command(
    "enable",
    short_help="Search conversations from now on.",
    epilog="Example: notewell sessions enable ~/.claude/projects",
)
@click.argument("folders", nargs=-1, metavar="[FOLDER]...", type=click.Path(path_type=Path))
@common_options
def enable(folders: tuple[Path, ...], *, chosen: Chosen) -> int:
    """Search conversations from now on: the agent's own, and those in each FOLDER of another program.

    Sets `sources`, and `sessions.paths` for folders, in your settings file.
    """
    from notewell.settings.edit import search_conversations

    found = [folder.expanduser().absolute() for folder in folders]
    for folder in found:
        if not folder.is_dir():
            raise SessionInputError(f"there is no folder {folder}", hint="name a folder that holds transcripts")
    file, lines = search_conversations(found)
    resolved = chosen.resolved(chosen.folder_if_any())
    steps = ["", "next:", "  notewell index  # they are found by keyword at once; this embeds them, too"]
    chosen.print({"file": str(file), "settings": list(lines)}, [*(f"{line}  (in {file})" for line in lines), *steps])
    if "sessions" not in resolved.settings.sources:
        print_notes([f"`sources` is also set elsewhere ({resolved.origins['sources']}), which counts more"])
        return 1
    return 0


def _expanded(names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the files that names and patterns match, for shells that do not expand them, and all files of folders."""
    from notewell.sessions import files_to_import

    found: list[str] = []
    for name in names:
        path = Path(name).expanduser()
        is_pattern = glob.has_magic(name) and not path.exists()
        matches = (is_pattern and sorted(glob.glob(str(path)))) or [name]  # noqa: PTH207 - Path.glob takes no absolute one
        for match in matches:
            folder = Path(match).expanduser()
            files = list(map(str, files_to_import(folder))) if folder.is_dir() else [match]
            if not files:
                raise SessionInputError(
                    f"there are no conversations in {match}", hint="import .jsonl, .json5 or .json files"
                )
            found += files
    return tuple(dict.fromkeys(found))


def _imported_line(file: str, imported: Imported, entry: SessionEntry) -> str:
    left_out = ", ".join(f"{count:,} {reason}" for reason, count in sorted(imported.left_out.items()))
    skipped = f"; left out: {left_out}" if left_out else ""
    new = "" if imported.added == entry.message_count else "new " if imported.added else "no new "
    count = f"{imported.added:,} " if imported.added else ""
    return f"{entry.session_id}: {count}{new}messages of {file}{skipped}"


@sessions.command("export", epilog="Example: notewell sessions export 7f3a --output chat.jsonl")
@click.argument("session_id", metavar="ID")
@click.option("--output", "-o", type=click.Path(dir_okay=False), metavar="FILE", help="Write to FILE, not to stdout.")
@common_options
def export(session_id: str, *, output: str | None, chosen: Chosen) -> None:
    """Export a conversation as JSONL.

    Writes one message per line, in OpenClaw's format.
    """
    from notewell.sessions import export_lines

    with chosen.memory() as memory:
        session = memory.conversations.get(session_id)
    if not output:
        chosen.print(session_document(session), export_lines(session))
        return
    text = "".join(f"{line}\n" for line in export_lines(session))
    Path(output).write_text(text, encoding="utf-8", newline="\n")
    chosen.print(
        {"sessionId": session.entry.session_id, "file": output},
        [f"{session.entry.message_count:,} messages written to {output}"],
    )


@sessions.command("index", epilog="Example: notewell sessions index")
@common_options
def index(*, chosen: Chosen) -> int:
    """Index new messages."""
    from notewell.cli.indexing import confirm_cost, print_report
    from notewell.cli.terminal import shown_progress

    with chosen.memory() as memory:
        confirm_cost(memory, memory.files("sessions"), batch=None)
        with shown_progress() as progress:
            report = memory.index(source="sessions", progress=progress)
    return print_report(chosen, report)


@sessions.command("compact", epilog="Example: notewell sessions compact 7f3a --keep 20")
@click.argument("session_id", metavar="ID")
@click.option(
    "--keep", type=click.IntRange(min=0), default=20, show_default=True, metavar="N", help="Newest messages to keep."
)
@click.option("--summary", default="", metavar="TEXT", help="Summary of the others.  [default: made from them]")
@click.option("--no-flush", is_flag=True, help="Do not write to today's note first.")
@common_options
def compact(session_id: str, *, keep: int, summary: str, no_flush: bool, chosen: Chosen) -> None:
    """Replace the oldest messages by a summary.

    What matters in them is written to today's note first. The messages themselves are kept as JSONL in the folder
    `compacted/` of the session store.
    """
    from notewell.sessions import plain_summary

    with chosen.memory() as memory:
        store = memory.conversations
        flushed = None if no_flush else memory.flush_session(session_id, keep_last=keep)
        going = max(0, len(store.get(session_id).messages) - keep) if flushed is None else flushed.through
        replaced = store.get(session_id).messages[:going]
        session = store.compact(session_id, summary or plain_summary(replaced), through=going)
    kept = len(session.messages)
    lines = [f"{going:,} messages compacted, {kept:,} kept"]
    if flushed and flushed.path:
        lines.append(f"written to {flushed.path}")
    flush = flushed_document(flushed) if flushed else None
    chosen.print({"sessionId": session.entry.session_id, "compacted": going, "kept": kept, "flush": flush}, lines)
    print_notes([flushed.note] if flushed and flushed.note else [])


@sessions.command("archive", epilog="Example: notewell sessions archive 7f3a")
@click.argument("session_id", metavar="ID")
@click.option("--undo", is_flag=True, help="Move it back.")
@common_options
def archive(session_id: str, *, undo: bool, chosen: Chosen) -> None:
    """Archive a session: it is kept and found, but no longer listed."""
    with chosen.memory() as memory:
        store = memory.conversations
        entry = store.unarchive(session_id) if undo else store.archive(session_id)
    state = "unarchived" if undo else "archived"
    chosen.print(entry_document(entry), [f"{entry.session_id} is {state}: {entry.session_file}"])


@sessions.command("delete", epilog="Example: notewell sessions delete 7f3a --yes")
@click.argument("session_id", metavar="ID")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@common_options
def delete(session_id: str, *, yes: bool, chosen: Chosen) -> None:
    """Delete a session and all its files. `notewell forget --session` clears the index as well."""
    with chosen.memory() as memory:
        entry = None if yes else memory.conversations.entry(session_id)
        if entry:
            if not sys.stdin.isatty():
                raise SessionInputError(f"session {entry.session_id!r} was not deleted", hint="use --yes to delete it")
            confirm(f"Delete {entry.session_id} with {entry.message_count:,} messages?", "nothing was deleted")
        gone = memory.conversations.delete(session_id)
    chosen.print({"deleted": list(gone)}, (f"deleted {path}" for path in gone if not path.startswith(".")))


@sessions.command("repair", epilog="Example: notewell sessions repair 7f3a")
@click.argument("session_id", metavar="ID")
@common_options
def repair(session_id: str, *, chosen: Chosen) -> None:
    """Repair a corrupt session.

    Recovers what can be read; the corrupt file is kept in the folder `damaged/` of the session store.
    """
    with chosen.memory() as memory:
        done = memory.conversations.repair(session_id)
        name = memory.conversations.path_of(session_id).stem
    document = {"sessionId": name, "repaired": bool(done), "notes": list(done)}
    chosen.print(document, done or [f"{session_id} needs no repair"])
