"""The memory as tools for a model: `openai()` and `anthropic()` describe them, `MemoryTools` answers the calls."""

from notewell.tools.calling import MemoryTools, ToolResult
from notewell.tools.formats import anthropic, openai
from notewell.tools.prompt import memory_prompt
from notewell.tools.schemas import ToolSpec

__all__ = ["MemoryTools", "ToolResult", "ToolSpec", "anthropic", "memory_prompt", "openai"]
