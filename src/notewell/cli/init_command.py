"""`notewell init`: make a folder a workspace."""

from __future__ import annotations

from pathlib import Path

import click

from notewell.cli.output import print_json, print_lines
from notewell.settings.workspace import create_workspace, expanded


@click.command("init", epilog="Example: notewell init ~/notes")
@click.argument("path", default=".", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def command(path: Path, *, as_json: bool) -> None:
    """Make PATH (default: this folder) a workspace: MEMORY.md and memory/. What is there is left alone."""
    folder = expanded(path).absolute()
    made = create_workspace(folder)
    if as_json:
        print_json({"workspace": str(folder), "made": [str(item) for item in made]})
        return
    print_lines([f"made {item}" for item in made] or [f"{folder} is a workspace already"])
    print_lines(
        ["", "next: write notes into MEMORY.md and memory/, then", f"  notewell search -w {folder} 'a question'"]
    )
