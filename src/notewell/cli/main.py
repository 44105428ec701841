"""The `notewell` command: finds the command asked for, and turns every outcome into output and an exit code."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import Any

import click

from notewell import NotewellError, __version__
from notewell.agents.documents import error_document
from notewell.cli.output import print_json, print_problem
from notewell.embedding.http_calls import silence_retries
from notewell.errors import system_error

COMMANDS = {  # name -> module below notewell.cli; a command is imported only when it is used
    "init": "init_command",
    "index": "index_command",
    "search": "search_command",
    "get": "get_command",
    "remember": "remember_command",
    "forget": "forget_command",
    "sessions": "sessions_command",
    "status": "status_command",
    "watch": "watch_command",
    "verify": "verify_command",
    "doctor": "doctor_command",
    "cache": "cache_command",
    "download": "download_command",
    "config": "config_command",
    "mcp": "mcp_command",
    "install": "install_command",
    "hook": "hook_command",
    "prompt": "prompt_command",
    "eval": "eval_command",
    "completion": "completion_command",
}
INTERRUPTED = 130  # what shells expect after Ctrl-C


class LazyGroup(click.Group):
    """Imports the module of a command when it is asked for, so that one command does not pay for all."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command = import_module(f"notewell.cli.{COMMANDS[cmd_name]}").command
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            import difflib

            close = difflib.get_close_matches(args[0], COMMANDS, n=1)
            ctx.fail(f"No such command '{args[0]}'." + (f" Did you mean '{close[0]}'?" if close else ""))
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError as error:
            raise ReaderGone from error


class ReaderGone(Exception):  # noqa: N818 - no failure, and not one that click may end the process for
    """Whoever read our output, such as `head`, has seen enough."""


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Example: notewell search 'what did we decide about the queue?'",
)
@click.version_option(__version__, prog_name="notewell")
def cli() -> None:
    """Long-term memory for AI agents, kept in plain Markdown and searched offline."""


def main(args: list[str] | None = None) -> None:
    """Run the command and exit: 0 well, 1 the user can mend it, 2 usage, 3 the index is unusable."""
    # One query is too small for NumPy's threads to share: while another process is busy they wait for each other, and a
    # search that takes 20 ms takes 300. onnxruntime, which embeds the notes, has threads of its own.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    silence_retries()  # stdout is for answers
    words = sys.argv[1:] if args is None else args
    sys.exit(run(words))


def run(words: list[str]) -> int:
    """Run the command and return its exit code; one JSON document goes to stdout in every state if asked for."""
    _write_any_character()
    try:
        outcome: Any = cli.main(args=words, prog_name="notewell", standalone_mode=False)
        sys.stdout.flush()
    except (BrokenPipeError, ReaderGone):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except click.exceptions.Exit as exit_:
        return exit_.exit_code
    except (NotewellError, click.ClickException, click.Abort, KeyboardInterrupt, OSError) as error:
        failure, exit_code = _failure(error)
        if "--json" in _options(words):
            print_json(error_document(failure))
        print_problem(failure)
        return exit_code
    return outcome if isinstance(outcome, int) else 0


class UsageError(NotewellError):
    """The command line cannot be understood."""

    exit_code = 2


class StoppedError(NotewellError):
    """The user stopped the command."""

    exit_code = INTERRUPTED


def _options(words: list[str]) -> list[str]:
    """Return the words that may be options: those before a bare `--`."""
    return words[: words.index("--")] if "--" in words else words


def _failure(error: BaseException) -> tuple[NotewellError, int]:
    """Return the error as the user sees it, and the exit code."""
    if isinstance(error, NotewellError):
        return error, error.exit_code
    if isinstance(error, click.ClickException):
        context = getattr(error, "ctx", None)
        asked = context.command_path if context else "notewell"
        return UsageError(error.format_message(), hint=f"see `{asked} --help`"), error.exit_code
    failure: NotewellError
    if isinstance(error, OSError):
        failure = system_error(error)
    else:
        failure = StoppedError("stopped; what was done so far is kept", hint="run the same command to go on")
    return failure, failure.exit_code


def _write_any_character() -> None:
    """Let output never fail for want of an encoding: an old Windows console shows an escape instead."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure:
            reconfigure(errors="backslashreplace")
