"""`notewell hook`: what the hooks of an agent's program call; it never breaks the session that calls it."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import click

from notewell import Memory, NotewellError
from notewell.agents.hooks import capture_transcript, recalled_at_start
from notewell.cli.options import Chosen, common_options
from notewell.cli.output import print_json, print_lines, print_notes
from notewell.settings import load_settings
from notewell.settings.workspace import find_workspace

LARGEST_EVENT = 4_000_000  # bytes; an event names files, it does not hold them
RESUMED = "resume"  # what was recalled at the first start is part of the conversation still


_event_option = click.option("--event", "event_file", metavar="FILE", help="Read the event from it instead of stdin.")


@click.group("hook", epilog="Example: notewell hook session-start --event event.json")
def command() -> None:
    """Called by hooks of Claude Code, with the event as JSON on stdin; what goes wrong is only said on stderr."""


@command.command("session-start", epilog="Example: notewell hook session-start --event event.json")
@_event_option
@common_options
def session_start(*, event_file: str | None, chosen: Chosen) -> None:
    """Print the curated memory and the latest notes, fenced, as the context of a new session."""
    _harmless(event_file, lambda event: _start(chosen, event))


@command.command("session-end", epilog="Example: notewell hook session-end --event event.json")
@_event_option
@common_options
def session_end(*, event_file: str | None, chosen: Chosen) -> None:
    """Bring the session's transcript into the conversation store."""
    _harmless(event_file, lambda event: _end(chosen, event))


def _start(chosen: Chosen, event: Mapping[str, Any]) -> None:
    if event.get("source") == RESUMED:
        return
    with _memory(chosen, event) as memory:
        text = recalled_at_start(memory)
    if text:
        print_json({"hookSpecificOutput": {"hookEventName": "SessionStart", "additionalContext": text}})


def _end(chosen: Chosen, event: Mapping[str, Any]) -> None:
    with _memory(chosen, event) as memory:
        done = capture_transcript(memory, event)
        searched = "sessions" in memory.settings.sources
    hint = "" if searched else '; to search them, set sources = ["memory", "sessions"]'
    if chosen.as_json:
        print_json({"sessionId": done.session_id, "added": done.added, "known": done.known})
    else:
        print_lines([f"session {done.session_id}: {done.added:,} messages kept{hint}"])


def _memory(chosen: Chosen, event: Mapping[str, Any]) -> Memory:
    """Open the memory of the folder that the session runs in, unless another is named."""
    told = event.get("cwd")
    start = Path(told) if isinstance(told, str) and told else None
    folder = find_workspace(chosen.workspace, environ=os.environ, start=start)
    return Memory(folder, load_settings(folder, agent=chosen.agent, flags=chosen.flags).settings, agent=chosen.agent)


def _harmless(event_file: str | None, work: Callable[[Mapping[str, Any]], None]) -> None:
    try:
        work(_event(event_file))
    except NotewellError as error:
        print_notes([f"notewell: {error.message}" + (f"; {error.hint}" if error.hint else "")])
    except Exception as error:  # noqa: BLE001 - whatever it is, the session that called us goes on
        print_notes([f"notewell: {type(error).__name__}: {error}"])


def _event(event_file: str | None) -> Mapping[str, Any]:
    if event_file is None and sys.stdin.isatty():
        return {}
    with nullcontext(sys.stdin.buffer) if event_file is None else Path(event_file).open("rb") as stream:
        text = stream.read(LARGEST_EVENT).decode("utf-8", "replace")
    try:
        event = json.loads(text) if text.strip() else {}
    except ValueError as error:
        raise NotewellError(f"the event is not valid JSON: {error}", hint="send one JSON object") from error
    if not isinstance(event, Mapping):
        raise NotewellError("the event is not a JSON object", hint="send one JSON object")
    return event
