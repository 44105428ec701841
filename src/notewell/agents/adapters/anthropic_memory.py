"""Anthropic's memory tool on a workspace: a memory comes in, a tool for the SDK's tool runner goes out."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from notewell.agents.adapters.memory_files import MemoryFiles
from notewell.agents.adapters.memory_paths import RefusedError
from notewell.agents.adapters.needed import needs_extra
from notewell.errors import MemoryDisabledError

with needs_extra("anthropic"):
    from anthropic.tools import ToolError
    from anthropic.tools.memory import BetaAbstractMemoryTool, BetaAsyncAbstractMemoryTool

if TYPE_CHECKING:
    from anthropic.types.beta import (
        BetaCacheControlEphemeralParam,
        BetaMemoryTool20250818Command,
        BetaMemoryTool20250818CreateCommand,
        BetaMemoryTool20250818DeleteCommand,
        BetaMemoryTool20250818InsertCommand,
        BetaMemoryTool20250818RenameCommand,
        BetaMemoryTool20250818StrReplaceCommand,
        BetaMemoryTool20250818ViewCommand,
    )

    from notewell.memory.memory import Memory

__all__ = ["AsyncWorkspaceMemoryTool", "WorkspaceMemoryTool"]

_PARAMETERS: dict[str, tuple[str, ...]] = {
    "view": ("path",),
    "create": ("path", "file_text"),
    "str_replace": ("path", "old_str", "new_str"),
    "insert": ("path", "insert_line", "insert_text"),
    "delete": ("path",),
    "rename": ("old_path", "new_path"),
}


class WorkspaceMemoryTool(BetaAbstractMemoryTool):
    """The memory tool for `client.beta.messages.tool_runner(...)`: `/memories` is the workspace's `memory/`."""

    def __init__(self, memory: Memory, *, cache_control: BetaCacheControlEphemeralParam | None = None) -> None:
        super().__init__(cache_control=cache_control)
        self._files = MemoryFiles(memory)

    def execute(self, command: BetaMemoryTool20250818Command) -> str:
        """Run one command; whatever goes wrong is a ToolError in words for the model."""
        return _run(self._files, command)

    def view(self, command: BetaMemoryTool20250818ViewCommand) -> str:
        return _run(self._files, command)

    def create(self, command: BetaMemoryTool20250818CreateCommand) -> str:
        return _run(self._files, command)

    def str_replace(self, command: BetaMemoryTool20250818StrReplaceCommand) -> str:
        return _run(self._files, command)

    def insert(self, command: BetaMemoryTool20250818InsertCommand) -> str:
        return _run(self._files, command)

    def delete(self, command: BetaMemoryTool20250818DeleteCommand) -> str:
        return _run(self._files, command)

    def rename(self, command: BetaMemoryTool20250818RenameCommand) -> str:
        return _run(self._files, command)


class AsyncWorkspaceMemoryTool(BetaAsyncAbstractMemoryTool):
    """The same for the asynchronous client; the work is done in a thread."""

    def __init__(self, memory: Memory, *, cache_control: BetaCacheControlEphemeralParam | None = None) -> None:
        super().__init__(cache_control=cache_control)
        self._files = MemoryFiles(memory)

    async def execute(self, command: BetaMemoryTool20250818Command) -> str:
        """Run one command; whatever goes wrong is a ToolError in words for the model."""
        return await asyncio.to_thread(_run, self._files, command)

    async def view(self, command: BetaMemoryTool20250818ViewCommand) -> str:
        return await self.execute(command)

    async def create(self, command: BetaMemoryTool20250818CreateCommand) -> str:
        return await self.execute(command)

    async def str_replace(self, command: BetaMemoryTool20250818StrReplaceCommand) -> str:
        return await self.execute(command)

    async def insert(self, command: BetaMemoryTool20250818InsertCommand) -> str:
        return await self.execute(command)

    async def delete(self, command: BetaMemoryTool20250818DeleteCommand) -> str:
        return await self.execute(command)

    async def rename(self, command: BetaMemoryTool20250818RenameCommand) -> str:
        return await self.execute(command)


def _run(files: MemoryFiles, command: object) -> str:
    if not files.memory.settings.enabled:
        raise MemoryDisabledError
    name = getattr(command, "command", None)
    if name not in _PARAMETERS:
        raise ToolError(f"Unknown command: {name}. Use one of {', '.join(_PARAMETERS)}.")
    # What a model leaves out is not there at all: the SDK does not check what it hands over.
    given = [(parameter, getattr(command, parameter, None)) for parameter in _PARAMETERS[name]]
    missing = [parameter for parameter, value in given if value is None]
    if missing:
        raise ToolError(f"The command {name} needs {' and '.join(f'`{each}`' for each in missing)}.")
    values: list[Any] = [value for _, value in given]
    if name == "view":
        view_range: Sequence[int] | None = getattr(command, "view_range", None)
        values.append(view_range)
    work: Callable[..., str] = getattr(files, name)
    try:
        return work(*values)
    except RefusedError as error:
        raise ToolError(str(error)) from error
