"""Runs the `notewell` command and turns the outcome into output and an exit code."""

from __future__ import annotations

import os
import sys
from io import TextIOWrapper
from pkgutil import resolve_name
from typing import Any

import click

from notewell import NotewellError, __version__
from notewell.agents.documents import error_document
from notewell.cli.terminal import INTERRUPTED, print_error, print_json
from notewell.embedding import silence_retries
from notewell.errors import system_error

COMMANDS = {  # name -> module and function; imported only when used
    "init": "writing:init",
    "index": "indexing:index",
    "search": "reading:search",
    "get": "reading:get",
    "list": "reading:list_",
    "timeline": "reading:timeline",
    "history": "reading:history",
    "remember": "writing:remember",
    "forget": "writing:forget",
    "undo": "writing:undo",
    "sessions": "sessions:sessions",
    "status": "reading:status",
    "watch": "indexing:watch",
    "verify": "indexing:verify",
    "doctor": "indexing:doctor",
    "migrate": "indexing:migrate",
    "cache": "upkeep:cache",
    "download": "upkeep:download",
    "config": "upkeep:config",
    "mcp": "agents:mcp",
    "install": "agents:install",
    "hook": "agents:hook",
    "prompt": "agents:prompt",
    "eval": "upkeep:evaluate",
    "completion": "upkeep:completion",
}


class LazyGroup(click.Group):
    """Imports the module of a command when it is used, to keep start-up fast."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command = resolve_name(f"notewell.cli.{COMMANDS[cmd_name]}")
        assert isinstance(command, click.Command)
        return command

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Make `notewell`, `notewell help` and `notewell help COMMAND` print help."""
        if not args or args[0] == "help":
            args = [*args[1:], "--help"]
        return super().parse_args(ctx, args)

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


class ReaderGone(Exception):  # noqa: N818 - not a failure, and click must not handle it
    """The reader of the output, such as `head`, closed the pipe."""


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Example: notewell search 'what did we decide about the queue?'",
)
@click.version_option(__version__, prog_name="notewell")
def cli() -> None:
    """Long-term memory for AI agents, kept in plain Markdown and searched offline."""


def main(args: list[str] | None = None) -> None:
    """Run the command and exit: 0 success, 1 the user can fix it, 2 usage, 3 the index is unusable."""
    # A query is too small for several NumPy threads: on a busy machine they wait for each other, and a search takes
    # 300 ms instead of 20. onnxruntime, which embeds the notes, has its own threads.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    silence_retries()  # stdout is for data
    words = sys.argv[1:] if args is None else args
    sys.exit(run(words))


def run(words: list[str]) -> int:
    """Run the command and return its exit code; with `--json` every outcome prints exactly one JSON document."""
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
        print_error(failure)
        return exit_code
    return outcome if isinstance(outcome, int) else 0


class UsageError(NotewellError):
    """The command line is invalid."""

    exit_code = 2


class StoppedError(NotewellError):
    """The user stopped the command."""

    exit_code = INTERRUPTED


def _options(words: list[str]) -> list[str]:
    """Return the words before `--`."""
    return words[: words.index("--")] if "--" in words else words


def _failure(error: BaseException) -> tuple[NotewellError, int]:
    """Return the error for the user, and the exit code."""
    if isinstance(error, NotewellError):
        return error, error.exit_code
    if isinstance(error, click.ClickException):
        context = error.ctx if isinstance(error, click.UsageError) else None
        asked = context.command_path if context else "notewell"
        return UsageError(error.format_message(), hint=f"see `{asked} --help`"), error.exit_code
    failure: NotewellError
    if isinstance(error, OSError):
        failure = system_error(error)
    else:
        failure = StoppedError("stopped; what was done so far is kept", hint="run the same command to continue")
    return failure, failure.exit_code


def _write_any_character() -> None:
    """Escape characters that stdout and stderr cannot encode, such as on an old Windows console."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
