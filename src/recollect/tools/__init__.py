"""The memory as tools for a model: `openai()` and `anthropic()` describe them, `MemoryTools` answers the calls."""

from recollect.tools.calling import MemoryTools, ToolResult
from recollect.tools.formats import anthropic, openai
from recollect.tools.prompt import memory_prompt
from recollect.tools.schemas import ToolSpec

__all__ = ["MemoryTools", "ToolResult", "ToolSpec", "anthropic", "memory_prompt", "openai"]
