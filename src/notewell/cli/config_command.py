"""`notewell config`: the settings in use and where they come from."""

from __future__ import annotations

import os

import click

from notewell.cli.options import Chosen, common_options
from notewell.cli.output import print_json, print_lines, print_notes
from notewell.settings import OPTIONS, WORKSPACE_FILE, flatten, user_file_of


@click.group("config", epilog="Example: notewell config show")
def command() -> None:
    """The settings in use and the files they come from."""


@command.command("show", epilog="Example: notewell config show --set query.max_results=3")
@common_options
def show(*, chosen: Chosen) -> None:
    """Show every setting, its value and who set it; secrets are masked."""
    resolved = chosen.resolved()
    values = {key: OPTIONS[key].public(value) for key, value in flatten(resolved.settings).items()}
    if chosen.as_json:
        settings = {key: {"value": value, "from": resolved.origins[key]} for key, value in values.items()}
        print_json({"settings": settings, "notes": list(resolved.notes)})
        return
    width = max(len(key) for key in OPTIONS)
    for key, value in values.items():
        origin = resolved.origins[key]
        print_lines([f"{key:{width}}  {value!r}" + ("" if origin == "default" else f"  ({origin})")])
    print_notes(resolved.notes)


@command.command("path", epilog="Example: notewell config path")
@common_options
def path(*, chosen: Chosen) -> None:
    """Show which settings files are read, and whether they are there."""
    files = {"user": user_file_of(os.environ)[0], "workspace": chosen.folder() / WORKSPACE_FILE}
    if chosen.as_json:
        print_json({name: {"path": str(file), "exists": file.exists()} for name, file in files.items()})
    else:
        print_lines(f"{name:10} {file}{'' if file.exists() else '  (not there)'}" for name, file in files.items())
