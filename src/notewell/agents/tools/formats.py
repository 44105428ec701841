"""Tools as data in, the lists that OpenAI's and Anthropic's function calling take out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from notewell.agents.tools.schemas import READING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from notewell.agents.documents import Json
    from notewell.agents.tools.schemas import ToolSpec

OpenAiApi = Literal["chat", "responses"]


def openai(specs: Iterable[ToolSpec] = READING, api: OpenAiApi = "chat") -> list[Json]:
    """Return the tools for OpenAI: of Chat Completions, which most compatible servers speak, or of Responses."""
    functions = [{"name": spec.name, "description": spec.description, "parameters": spec.parameters} for spec in specs]
    if api == "responses":
        return [{"type": "function", **function, "strict": False} for function in functions]  # strict wants no options
    return [{"type": "function", "function": function} for function in functions]


def anthropic(specs: Iterable[ToolSpec] = READING) -> list[Json]:
    """Return the tools for Anthropic's Messages API."""
    return [{"name": spec.name, "description": spec.description, "input_schema": spec.parameters} for spec in specs]
