"""The commands that write the memory: init, remember, forget and undo."""

from __future__ import annotations

import json
import os
import shlex
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import click

from notewell import Memory, QueryError
from notewell.agents.documents import document_of, remembered_document
from notewell.agents.rendering import forget_lines, remembered_lines, trash_lines, undo_lines
from notewell.cli.options import Chosen, common_options, path_in
from notewell.cli.terminal import confirm, print_json, print_lines, print_notes, print_problems, yes_or_no
from notewell.settings.workspace import EVERY_NOTE, WORKSPACE_FILE, create_workspace, expanded
from notewell.types import Category

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


@click.command("init", epilog="Example: notewell init ~/notes --yes")
@click.argument("path", default=".", type=click.Path(path_type=Path))
@click.option(
    "--yes/--no",
    "-y/-n",
    "answer",
    default=None,
    help="Index all Markdown files in PATH, or only MEMORY.md and memory/.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def init(path: Path, *, answer: bool | None, as_json: bool) -> None:
    """Create a workspace in PATH, by default the current folder.

    It gets MEMORY.md and memory/; existing files are kept. If there are other Markdown files, you are asked whether to
    index them; the answer is kept in notewell.toml.
    """
    folder = expanded(path).absolute()
    created = create_workspace(folder)
    agent = os.environ.get("NOTEWELL_AGENT") or "main"
    with Memory.open(folder, agent=agent) as memory:
        uncovered, include = memory.uncovered(), memory.settings.include
        notes = memory.unsearched_conversations()
    if not as_json:
        print_lines([f"created {item}" for item in created] or [f"{folder} is already a workspace"])
        if uncovered.count:
            print_lines([f"found {uncovered} that {'is' if uncovered.count == 1 else 'are'} not part of it"])
    if uncovered.count and answer is None and not as_json and sys.stdin.isatty() and sys.stdout.isatty():
        answer = yes_or_no("Index them, too?", default=True)
    if include is None and answer is not None and (uncovered.count or not answer):
        include = (EVERY_NOTE,) if answer else ()
        from notewell.settings.edit import change_settings  # tomllib takes 8 ms

        file = folder / WORKSPACE_FILE
        change_settings(file, {"include": include})
        if not as_json:
            print_lines([f"wrote to {file}: include = {json.dumps(include)}"])
    if as_json:
        print_json(
            {
                "workspace": str(folder),
                "made": [str(item) for item in created],
                "found": uncovered.count,
                "include": None if include is None else list(include),
                "notes": notes,
                "problems": document_of(uncovered.problems),
            }
        )
        return
    print_lines(["", *_next_steps(folder, found=uncovered.count > 0, include=include)])
    print_notes(notes)
    print_problems(uncovered.problems)


def _next_steps(folder: Path, *, found: bool, include: Sequence[str] | None) -> Iterator[str]:
    """Yield the next steps in a new workspace; `-w` is only needed elsewhere."""
    place = "" if folder == Path.cwd() else shlex.quote(str(folder))
    chosen = f" -w {place}" if place else ""
    if include:
        yield from ("next:", f"  notewell index{chosen}")
    elif found and include is None:
        yield from ("next:", f"  notewell init --yes {place}".rstrip() + "  # to index them, or --no to leave them out")
    else:
        yield "next: write notes into MEMORY.md and memory/, then"
    yield f"  notewell search{chosen} 'a question'"


@click.command("remember", epilog='Example: notewell remember "the guest wifi is heron-guest"')
@click.argument("words", nargs=-1, required=True, metavar="TEXT...")
@click.option("--to", metavar="NOTE", help="Note to append to.  [default: today's, memory/YYYY-MM-DD.md]")
@click.option("--by", metavar="NAME", help="Author.  [default: the agent]")
@click.option("--source", metavar="WHERE", default="the command line", show_default=True, help="Origin of the text.")
@click.option(
    "--category", type=click.Choice(get_args(Category)), default="other", show_default=True, help="Kind of entry."
)
@click.option(
    "--importance",
    type=click.IntRange(1, 10),
    default=5,
    metavar="N",
    help="1 to 10, which matters most.  [default: 5]",
)
@click.option("--replaces", metavar="ENTRY", help="Older entry that TEXT replaces: its id, or a citation.")
@click.option("--force", is_flag=True, help="Write the text even if a note already says the same.")
@click.option("--keep-secret", is_flag=True, help="Write passwords and keys in TEXT as they are.")
@common_options
def remember(words: tuple[str, ...], *, to: str | None, by: str | None, chosen: Chosen, **options: Any) -> None:
    """Append TEXT to a note, with its author, time and origin.

    TEXT may be several words without quotes; if it is -, it is read from standard input. What a note already says is
    not written twice, and secrets are redacted, unless an option says otherwise.
    """
    text = sys.stdin.read() if words == ("-",) else " ".join(words)
    with chosen.memory() as memory:
        done = memory.remember(text, to=to and path_in(memory, to), who=by, **options)
    chosen.print(remembered_document(done), remembered_lines(done), notes=done.notes)


@click.command("forget", epilog="Example: notewell forget --match 'silk gloss' --dry-run")
@click.argument("entries", nargs=-1, metavar="[ENTRY]...")
@click.option("--session", metavar="ID", help="Forget a conversation of the session store.")
@click.option("--path", metavar="NOTE", help="Forget a note or transcript, as `search` cites it.")
@click.option("--match", metavar="TEXT", help="Forget every line of a note and every message containing TEXT.")
@click.option("--substring", is_flag=True, help="Let --match find TEXT inside words, too.")
@click.option("--since", metavar="DAY", help="Forget only what is of that day or later; undated notes are kept.")
@click.option("--for-good", is_flag=True, help="Erase it without a trace, also from the trash. This has no undo.")
@click.option("--dry-run", is_flag=True, help="Show what would be forgotten, and change nothing.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask for confirmation.")
@common_options
def forget(
    entries: tuple[str, ...],
    *,
    path: str | None,
    substring: bool,
    for_good: bool,
    dry_run: bool,
    yes: bool,
    chosen: Chosen,
    **options: Any,
) -> int:
    """Move entries, notes, lines or conversations to the trash.

    ENTRY is the id of a remembered entry, or a citation such as memory/a.md#L8-L10. What is in the trash is found no
    more; `notewell undo` restores it within 30 days, and then it is erased. Copies in git, backups and other programs
    are not touched.
    """
    with chosen.memory() as memory:
        wanted = partial(
            memory.forget,
            *entries,
            path=path and path_in(memory, path),
            whole_words=not substring,
            for_good=for_good,
            **options,
        )
        report = wanted(dry_run=True) if dry_run or not yes else None
        shown = bool(report and report.forgotten) and not dry_run
        if shown and report:
            print_lines(forget_lines(report), err=True)
            if not sys.stdin.isatty():
                raise QueryError(
                    f"forgetting {'cannot be undone and ' if for_good else ''}needs a confirmation",
                    hint="if this is what you mean, run the same command with --yes",
                )
            confirm("Erase this for good?" if for_good else "Move this to the trash?", "nothing was forgotten")
        if not report or not dry_run:
            report = wanted(confirmed=report if shown else None)
    lines = forget_lines(report, with_text=not shown)
    chosen.print(document_of(report), lines, notes=report.notes, problems=report.problems)
    return 1 if report.problems else 0


@click.command("undo", short_help="Restore what was forgotten.", epilog="Example: notewell undo --list")
@click.argument("trash_id", metavar="[ID]", required=False)
@click.option("--list", "only_list", is_flag=True, help="List what can be restored, and change nothing.")
@common_options
def undo(trash_id: str | None, *, only_list: bool, chosen: Chosen) -> int:
    """Restore what was forgotten last, or what was forgotten under ID.

    The trash keeps it for 30 days. Nothing is overwritten: in a note that has changed since, lines come back where the
    lines around them are, or at its end.
    """
    with chosen.memory() as memory:
        if only_list:
            trash = memory.trash()
            chosen.print({"trash": document_of(trash)}, trash_lines(trash))
            return 0
        report = memory.undo(trash_id)
    chosen.print(document_of(report), undo_lines(report), notes=report.notes, problems=report.problems)
    return 1 if report.problems else 0
