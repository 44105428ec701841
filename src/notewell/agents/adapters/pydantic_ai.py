"""A pydantic-ai toolset with the memory tools and their instructions."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from notewell.agents.adapters.shared import needs_extra
from notewell.agents.tools import MemoryTools

with needs_extra("pydantic-ai"):
    from pydantic_ai.exceptions import ModelRetry
    from pydantic_ai.tools import ToolDefinition
    from pydantic_ai.toolsets import AbstractToolset
    from pydantic_ai.toolsets.abstract import ToolsetTool
    from pydantic_core import SchemaValidator, core_schema

if TYPE_CHECKING:
    from pydantic_ai import RunContext

    from notewell.agents.tools.prompt import Citations
    from notewell.memory.memory import Memory
    from notewell.sources.privacy import Chat

__all__ = ["MemoryToolset"]

# MemoryTools checks the arguments itself and explains errors to the model.
_ANYTHING = SchemaValidator(core_schema.dict_schema(core_schema.str_schema(), core_schema.any_schema()))


class MemoryToolset(AbstractToolset[Any]):
    """`Agent(..., toolsets=[MemoryToolset(memory)])` gives an agent the memory tools.

    The options are those of `MemoryTools`; `read_only=True` leaves out those that write. Errors go back to the model,
    which may retry `max_retries` times before the run fails.
    """

    def __init__(
        self,
        memory: Memory,
        *,
        chat: Chat | None = None,
        citations: Citations | None = None,
        read_only: bool | None = None,
        instructions: bool = True,
        max_retries: int = 3,
        id: str = "notewell",  # noqa: A002 - pydantic-ai's own name for it
    ) -> None:
        self._tools = MemoryTools(memory, chat=chat, citations=citations, read_only=read_only)
        self._instructions = instructions
        self._max_retries = max_retries
        self._id = id

    @property
    def id(self) -> str:
        return self._id

    async def get_instructions(self, ctx: RunContext[Any]) -> str | None:  # noqa: ARG002 - the framework decides
        """Return the memory section of the system prompt, made from the current state."""
        return await asyncio.to_thread(self._tools.prompt) if self._instructions else None

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:  # noqa: ARG002
        return {
            spec.name: ToolsetTool(
                toolset=self,
                tool_def=ToolDefinition(
                    name=spec.name, description=spec.description, parameters_json_schema=spec.parameters
                ),
                max_retries=self._max_retries,
                args_validator=_ANYTHING,
            )
            for spec in self._tools.specs
        }

    async def call_tool(
        self,
        name: str,
        tool_args: dict[str, Any],
        ctx: RunContext[Any],  # noqa: ARG002
        tool: ToolsetTool[Any],  # noqa: ARG002
    ) -> Any:
        """Run a tool; raises ModelRetry with the error and what to do next."""
        result = await asyncio.to_thread(self._tools.call, name, tool_args)
        if result.is_error:
            raise ModelRetry(result.text)
        return result.document
