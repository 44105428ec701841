"""The memory as tools for a model: `openai()` and `anthropic()` describe them, `MemoryTools` runs them."""

from notewell.agents.tools.calling import MemoryTools, ToolResult
from notewell.agents.tools.prompt import memory_prompt
from notewell.agents.tools.schemas import ToolSpec, anthropic, openai

__all__ = ["MemoryTools", "ToolResult", "ToolSpec", "anthropic", "memory_prompt", "openai"]
