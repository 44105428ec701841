"""`notewell install`: make the memory known to an agent's program as an MCP server."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import click

from notewell import NotewellError
from notewell.agents.install import CLIENTS, apply_change, plan_change, server_for
from notewell.cli.options import Chosen, common_options
from notewell.cli.output import print_json, print_lines, print_notes

if TYPE_CHECKING:
    from notewell.agents.install import Change


@click.command("install", epilog="Example: notewell install claude-code --dry-run")
@click.argument("client", type=click.Choice(list(CLIENTS)))
@click.option("--dry-run", is_flag=True, help="Show what would change and write nothing.")
@click.option("--uninstall", is_flag=True, help="Take it away again.")
@click.option("--name", default="memory", show_default=True, metavar="NAME", help="What the server is called there.")
@click.option(
    "--scope",
    type=click.Choice(["user", "project"]),
    default="user",
    show_default=True,
    help="Your own settings, or those of the project in the current folder.",
)
@click.option("--append", is_flag=True, help="Let the agent add to notes as well (memory_append).")
@common_options
def command(
    client: str, *, dry_run: bool, uninstall: bool, name: str, scope: str, append: bool, chosen: Chosen
) -> None:
    """Write the MCP server into the settings of CLIENT; a backup of them is kept, all else in them stays."""
    chosen_client = CLIENTS[client]
    project = Path.cwd() if scope == "project" else None
    if project is not None and not chosen_client.project_file:
        raise NotewellError(
            f"{chosen_client.title} has no settings of a project that it would trust", hint="use --scope user"
        )
    file = project / chosen_client.project_file if project else chosen_client.user_file(os.environ)
    server = None
    if not uninstall:
        server = server_for(chosen_client, chosen.folder(), project=project, agent=chosen.agent, append=append)
    change = plan_change(chosen_client, file, name=name, server=server)
    backup = None if dry_run else apply_change(change)
    if chosen.as_json:
        print_json(_document(change, backup, dry_run=dry_run, uninstall=uninstall))
    elif dry_run:
        print_lines(change.diff.splitlines() or [_unchanged(change, uninstall=uninstall)])
    else:
        print_lines([_told(change, backup, uninstall=uninstall)])
    if not uninstall and find_spec("mcp") is None:
        print_notes(["the server needs the extra mcp: pip install 'notewell[mcp]'"])
    if change.is_change and not dry_run and not uninstall:
        print_notes([chosen_client.next_step])


def _told(change: Change, backup: Path | None, *, uninstall: bool) -> str:
    if not change.is_change:
        return _unchanged(change, uninstall=uninstall)
    kept = f"; the file as it was is kept as {backup}" if backup else ""
    return f"{change.name} {'removed from' if uninstall else 'written to'} {change.file}{kept}"


def _unchanged(change: Change, *, uninstall: bool) -> str:
    return f"{change.name} is {'not in' if uninstall else 'already in'} {change.file}; nothing to do"


def _document(change: Change, backup: Path | None, *, dry_run: bool, uninstall: bool) -> dict[str, object]:
    return {
        "client": change.client.name,
        "name": change.name,
        "file": str(change.file),
        "action": "uninstall" if uninstall else "install",
        "changed": change.is_change,
        "dryRun": dry_run,
        "backup": str(backup) if backup else None,
        "diff": change.diff,
    }
