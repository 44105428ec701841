"""Anthropic's memory tool for the SDK's tool runner, with a workspace's notes as its files."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from notewell.agents.adapters.anthropic_commands import MemoryCommands, RefusedError
from notewell.agents.adapters.shared import needs_extra
from notewell.errors import MemoryDisabledError

with needs_extra("anthropic"):
    from anthropic.tools import ToolError
    from anthropic.tools.memory import BetaAbstractMemoryTool, BetaAsyncAbstractMemoryTool

if TYPE_CHECKING:
    from anthropic.types.beta import BetaCacheControlEphemeralParam

    from notewell.memory.memory import Memory

__all__ = ["AsyncWorkspaceMemoryTool", "WorkspaceMemoryTool"]

_COMMANDS: dict[str, tuple[Callable[..., str], tuple[str, ...]]] = {  # with their required parameters
    "view": (MemoryCommands.view, ("path",)),
    "create": (MemoryCommands.create, ("path", "file_text")),
    "str_replace": (MemoryCommands.str_replace, ("path", "old_str", "new_str")),
    "insert": (MemoryCommands.insert, ("path", "insert_line", "insert_text")),
    "delete": (MemoryCommands.delete, ("path",)),
    "rename": (MemoryCommands.rename, ("old_path", "new_path")),
}


class WorkspaceMemoryTool(BetaAbstractMemoryTool):
    """The memory tool for `client.beta.messages.tool_runner(...)`: `/memories` is the workspace's `memory/`."""

    def __init__(self, memory: Memory, *, cache_control: BetaCacheControlEphemeralParam | None = None) -> None:
        super().__init__(cache_control=cache_control)
        self._commands = MemoryCommands(memory)

    def execute(self, command: Any) -> str:
        """Run one command; raises ToolError with a message for the model."""
        return _run(self._commands, command)

    view = create = str_replace = insert = delete = rename = execute


class AsyncWorkspaceMemoryTool(BetaAsyncAbstractMemoryTool):
    """The same for the asynchronous client; commands run in a thread."""

    def __init__(self, memory: Memory, *, cache_control: BetaCacheControlEphemeralParam | None = None) -> None:
        super().__init__(cache_control=cache_control)
        self._commands = MemoryCommands(memory)

    async def execute(self, command: Any) -> str:
        """Run one command; raises ToolError with a message for the model."""
        return await asyncio.to_thread(_run, self._commands, command)

    view = create = str_replace = insert = delete = rename = execute


def _run(commands: MemoryCommands, command: Any) -> str:
    if not commands.memory.settings.enabled:
        raise MemoryDisabledError
    # The SDK does not check what the model sends: a parameter that it left out is missing from the object.
    name = getattr(command, "command", None)
    if name not in _COMMANDS:
        raise ToolError(f"Unknown command: {name}. Use one of {', '.join(_COMMANDS)}.")
    run, required = _COMMANDS[name]
    arguments = {parameter: getattr(command, parameter, None) for parameter in required}
    missing = [f"`{parameter}`" for parameter, value in arguments.items() if value is None]
    if missing:
        raise ToolError(f"The command {name} needs {' and '.join(missing)}.")
    if name == "view":
        arguments["view_range"] = getattr(command, "view_range", None)
    try:
        return run(commands, **arguments)
    except RefusedError as error:
        raise ToolError(str(error)) from error
