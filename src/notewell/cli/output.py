"""Where output goes: data to stdout, everything else to stderr."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Iterable

    from notewell import NotewellError
    from notewell.agents.documents import Json


def print_json(document: Json) -> None:
    """Write one JSON document to stdout; where that cannot hold every character, JSON's own escapes are used."""
    encoding = (getattr(sys.stdout, "encoding", None) or "ascii").lower().replace("_", "-")
    click.echo(json.dumps(document, ensure_ascii=encoding not in {"utf-8", "utf8"}, indent=2, default=str))


def print_lines(lines: Iterable[str]) -> None:
    """Write lines of data to stdout."""
    for line in lines:
        click.echo(line)


def print_notes(notes: Iterable[str]) -> None:
    """Tell the reader something beside the data."""
    for note in notes:
        click.echo(f"note: {note}", err=True)


def print_problem(error: NotewellError) -> None:
    """Say on stderr what went wrong and what to do next."""
    click.echo(f"{click.style('error:', fg='red') if sys.stderr.isatty() else 'error:'} {error.message}", err=True)
    if error.hint:
        click.echo(f"       {error.hint}", err=True)


def strong(text: str) -> str:
    """Make text stand out on a terminal."""
    return click.style(text, bold=True)


def faint(text: str) -> str:
    """Make text step back on a terminal."""
    return click.style(text, dim=True)
