"""The commands that connect agents: mcp, install, hook and prompt."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from notewell import NotewellError, SessionInputError, WorkspaceNotFoundError
from notewell.agents.install import CLIENTS, apply_change, plan_change, server_for
from notewell.cli.options import Chosen, common_options
from notewell.cli.terminal import print_json, print_notes

if TYPE_CHECKING:
    from notewell.agents.install import Change
    from notewell.agents.tools.prompt import Citations, PromptMode
    from notewell.sources.privacy import Chat

DEFAULT_PORT = 8765
MAX_EVENT_BYTES = 4_000_000  # an event only names files

_chat_option = click.option(
    "--chat", type=click.Choice(["direct", "group"]), default="direct", help="Audience of the agent."
)


@click.command("mcp", epilog="Example: notewell mcp --workspace .")
@click.option("--http", "over_http", is_flag=True, help="Serve streamable HTTP instead of stdin and stdout.")
@click.option("--host", default="127.0.0.1", metavar="HOST", help="Host to listen on.  [default: 127.0.0.1]")
@click.option("--port", type=int, default=DEFAULT_PORT, metavar="N", help="Port; 0 picks a free one.  [default: 8765]")
@click.option("--allow-host", "names", multiple=True, metavar="NAME", help="Accept NAME as a name of this server.")
@_chat_option
@click.option("--read-only", is_flag=True, help="Offer no tool that changes notes.")
@click.option("--optional", is_flag=True, help="Without a workspace, serve no tools instead of failing.")
@common_options
def mcp(
    *,
    over_http: bool,
    host: str,
    port: int,
    names: tuple[str, ...],
    chat: Chat,
    read_only: bool,
    optional: bool,
    chosen: Chosen,
) -> None:
    """Serve the memory to agents over MCP.

    Serves on stdin and stdout until the client disconnects, or over HTTP until Ctrl-C.
    """
    from notewell.agents.tools import MemoryTools

    if chosen.as_json:
        raise click.UsageError("--json: a server prints no document.")
    if optional and over_http:
        raise click.UsageError("--optional is for a server on stdin and stdout.")
    idle = optional and chosen.folder_if_any() is None
    tools = None if idle else MemoryTools(chosen.memory(), chat=chat, read_only=read_only or None)
    try:
        from notewell.mcp.transports import serve_http, serve_stdio
    except ImportError as error:
        raise NotewellError(
            f"the MCP server needs a package that is missing: {error.name}", hint="pip install 'notewell[mcp]'"
        ) from error
    if over_http:
        assert tools is not None
        serve_http(tools, host=host, port=port, names=names, announce=lambda url: print_notes([f"serving {url}"]))
    else:
        serve_stdio(tools)


@click.command("install", epilog="Example: notewell install claude-code --dry-run")
@click.argument("client", type=click.Choice(list(CLIENTS)), metavar="CLIENT")
@click.option("--dry-run", is_flag=True, help="Show what would change, and write nothing.")
@click.option("--uninstall", is_flag=True, help="Remove the server again.")
@click.option("--name", default="memory", show_default=True, metavar="NAME", help="Name of the server in the client.")
@click.option(
    "--scope",
    type=click.Choice(["user", "project"]),
    default="user",
    show_default=True,
    help="Change your own settings, or those of the project in the current folder.",
)
@click.option("--read-only", is_flag=True, help="Give the agent no tool that changes notes.")
@common_options
def install(
    client: str, *, dry_run: bool, uninstall: bool, name: str, scope: str, read_only: bool, chosen: Chosen
) -> None:
    """Add the MCP server to the settings of CLIENT. A backup is kept, and nothing else is changed.

    CLIENT is claude-code, claude-desktop, codex, openclaw, cursor or vscode.
    """
    chosen_client = CLIENTS[client]
    project = Path.cwd() if scope == "project" else None
    if project is not None and not chosen_client.project_file:
        raise NotewellError(f"{chosen_client.title} has no trusted project settings", hint="use --scope user")
    file = project / chosen_client.project_file if project else chosen_client.user_file(os.environ)
    entry, offered = None, []
    if not uninstall:
        folder = chosen.folder()
        entry = server_for(chosen_client, folder, project=project, agent=chosen.agent, read_only=read_only)
        offered = _offered(read_only=read_only or chosen.resolved(folder).settings.tools.read_only)
    change = plan_change(chosen_client, file, name=name, entry=entry)
    backup = None if dry_run else apply_change(change)
    document = {
        "client": change.client.name,
        "name": change.name,
        "file": str(change.file),
        "action": "uninstall" if uninstall else "install",
        "changed": change.is_change,
        "dryRun": dry_run,
        "backup": str(backup) if backup else None,
        "diff": change.diff,
        "tools": offered,
    }
    diff = change.diff.splitlines() if dry_run else []
    chosen.print(document, diff or [_outcome(change, backup, uninstall=uninstall)])
    if not uninstall and not chosen.as_json:
        click.echo(f"tools: {', '.join(offered)}" + ("; read-only" if len(offered) < len(_offered()) else ""), err=True)
    if not uninstall and find_spec("mcp") is None:
        print_notes(["the server needs the extra mcp: pip install 'notewell[mcp]'"])
    if change.is_change and not dry_run and not uninstall:
        print_notes(filter(None, [chosen_client.beside, chosen_client.next_step]))


def _offered(*, read_only: bool = False) -> list[str]:
    """Return the names of the tools that the server offers."""
    from notewell.agents.tools.schemas import READING, WRITING

    return [spec.name for spec in (READING if read_only else (*READING, *WRITING))]


def _outcome(change: Change, backup: Path | None, *, uninstall: bool) -> str:
    if not change.is_change:
        return f"{change.name} is {'not' if uninstall else 'already'} in {change.file}; nothing to do"
    kept = f"; the previous file is kept as {backup}" if backup else ""
    return f"{change.name} {'removed from' if uninstall else 'added to'} {change.file}{kept}"


@click.command("prompt", epilog="Example: notewell prompt --chat group")
@click.option("--mode", type=click.Choice(["full", "minimal"]), default="full", help="`minimal` prints nothing.")
@click.option("--citations", type=click.Choice(["auto", "on", "off"]), help="Let the agent cite files and lines.")
@click.option(
    "--with-memory", is_flag=True, help="Add MEMORY.md and the notes of today and yesterday, as far as they fit."
)
@_chat_option
@common_options
def prompt(*, mode: PromptMode, citations: Citations | None, with_memory: bool, chat: Chat, chosen: Chosen) -> None:
    """Print the memory section of a system prompt.

    It tells an agent when to search this memory, how to cite it and what to do when unsure.
    """
    from notewell.agents.tools.prompt import memory_prompt

    flags = chosen.flags | ({"tools.citations": citations} if citations else {})
    with replace(chosen, flags=flags).memory() as memory:
        section = memory_prompt(memory, mode=mode, chat=chat)
        context = memory.session_context(chat=chat) if with_memory and section else None
    text = f"{section}\n\n{context.text}" if context and context.text else section
    report = {"report": context.report(text)} if context else {}
    chosen.print({"mode": mode, "prompt": text, **report}, [text] if text else [])
    if context and not chosen.as_json:
        print_notes(context.notes)
        print_notes(
            f"{file.path}: {file.injected_chars:,} of {file.raw_chars:,} characters fit"
            for file in context.files
            if file.truncated
        )


_event_option = click.option("--event", "event_file", metavar="FILE", help="Read the event from FILE, not from stdin.")


@click.group("hook", epilog="Example: notewell hook session-start --event event.json")
def hook() -> None:
    """Run a hook of Claude Code.

    Reads the event as JSON from stdin. Errors go to stderr, and the exit code is always 0.
    """


@hook.command("session-start", epilog="Example: notewell hook session-start --event event.json")
@_event_option
@common_options
def session_start(*, event_file: str | None, chosen: Chosen) -> None:
    """Print context for a new session.

    Prints the curated memory and the latest notes, fenced.
    """
    _without_failing(event_file, lambda event: _start_session(chosen, event))


@hook.command("session-end", epilog="Example: notewell hook session-end --event event.json")
@_event_option
@common_options
def session_end(*, event_file: str | None, chosen: Chosen) -> None:
    """Import the session's transcript into the session store."""
    _without_failing(event_file, lambda event: _end_session(chosen, event))


def _start_session(chosen: Chosen, event: Mapping[str, Any]) -> None:
    """Print the context for a new session after a line on the state of the memory, if there is any."""
    from notewell.agents.tools.prompt import state_line

    if event.get("source") == "resume":  # the conversation already contains the context
        return
    with chosen.memory(_folder_of(event)) as memory:
        context = memory.session_context()
        text = f"{state_line(memory)}\n{context.text}" if context.text else ""
    if text:
        print_json({"hookSpecificOutput": {"hookEventName": "SessionStart", "additionalContext": text}})


def _end_session(chosen: Chosen, event: Mapping[str, Any]) -> None:
    """Store the transcript of the event; only the new messages of a resumed session."""
    from notewell.cli.sessions import make_searchable
    from notewell.sessions import import_lines, merge

    with chosen.memory(_folder_of(event)) as memory:
        named, session_id = event.get("transcript_path"), event.get("session_id")
        if not isinstance(named, str) or not named:
            raise SessionInputError("the event names no transcript", hint="it must have `transcript_path`")
        with Path(named).expanduser().open(encoding="utf-8", errors="replace", newline="\n") as lines:
            session = import_lines(lines, session_id=session_id if isinstance(session_id, str) else "").session
        entry = replace(session.entry, channel=session.entry.channel or "claude-code")
        stored, added = merge(memory.conversations, replace(session, entry=entry))
    chosen.print(
        {"sessionId": stored.session_id, "added": added, "known": len(session.messages) - added},
        [f"session {stored.session_id}: {added:,} messages imported"],
    )
    print_notes(make_searchable(chosen, _folder_of(event), ask=True))


def _folder_of(event: Mapping[str, Any]) -> Path | None:
    """Return the session's folder."""
    folder = event.get("cwd")
    return Path(folder) if isinstance(folder, str) and folder else None


def _without_failing(event_file: str | None, work: Callable[[Mapping[str, Any]], None]) -> None:
    try:
        work(_event(event_file))
    except WorkspaceNotFoundError:
        return  # a project without a memory: nothing to do
    except NotewellError as error:
        print_notes([f"notewell: {error.message}" + (f"; {error.hint}" if error.hint else "")])
    except Exception as error:  # noqa: BLE001 - a hook must never stop the session
        print_notes([f"notewell: {type(error).__name__}: {error}"])


def _event(event_file: str | None) -> Mapping[str, Any]:
    if event_file is None and sys.stdin.isatty():
        return {}
    with nullcontext(sys.stdin.buffer) if event_file is None else Path(event_file).open("rb") as stream:
        text = stream.read(MAX_EVENT_BYTES).decode("utf-8", "replace")
    try:
        event = json.loads(text) if text.strip() else {}
    except ValueError as error:
        raise NotewellError(f"the event is not valid JSON: {error}", hint="send one JSON object") from error
    if not isinstance(event, Mapping):
        raise NotewellError("the event is not a JSON object", hint="send one JSON object")
    return event
