"""MemoryTools: a tool's name and arguments in, its result or a tool error out; the same for every way of calling."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Unpack

from notewell.agents.documents import (
    error_document,
    note_document,
    remembered_document,
    search_document,
    status_document,
)
from notewell.agents.tools import formats
from notewell.agents.tools.arguments import checked_arguments
from notewell.agents.tools.injection import fenced_note, injected_hits, with_citations
from notewell.agents.tools.prompt import memory_prompt
from notewell.agents.tools.schemas import APPEND, BY_NAME, GET, READING, SEARCH, STATUS
from notewell.errors import NotewellError, QueryError, system_error
from notewell.search.options import declared_options
from notewell.sources.privacy import audience_of
from notewell.text.fences import fence

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from notewell.agents.documents import Json
    from notewell.agents.tools.formats import OpenAiApi
    from notewell.agents.tools.injection import Citations
    from notewell.agents.tools.prompt import PromptMode
    from notewell.agents.tools.schemas import ToolSpec
    from notewell.memory.memory import Memory
    from notewell.search.options import SearchOptions
    from notewell.sources.privacy import Chat


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a call gives back to the model."""

    document: Json  # as the command's --json; {"error": {...}} when it failed
    is_error: bool = False

    @property
    def text(self) -> str:
        """The document as compact JSON, for the message that answers the call."""
        return json.dumps(self.document, ensure_ascii=False, separators=(",", ":"), default=str)


class MemoryTools:
    """The tools of one memory for one kind of chat. Safe to use from several threads, as the memory is."""

    def __init__(
        self,
        memory: Memory,
        *,
        chat: Chat | None = None,
        citations: Citations | None = None,
        append: bool | None = None,
    ) -> None:
        settings = memory.settings.tools
        self.memory = memory
        self.chat: Chat = audience_of(chat, None, memory.audience).chat
        self.citations: Citations = citations or settings.citations
        self.append = settings.append if append is None else append
        self._work: Mapping[str, Callable[..., Json]] = {
            SEARCH.name: self._search,
            GET.name: self._get,
            STATUS.name: self._status,
            APPEND.name: self._append,
        }

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        """The tools on offer; `memory_append` only when it is turned on."""
        return (*READING, STATUS, APPEND) if self.append else (*READING, STATUS)

    @property
    def cited(self) -> bool:
        """Whether results carry citations."""
        return with_citations(self.citations, self.chat)

    def openai(self, api: OpenAiApi = "chat") -> list[Json]:
        """Return the tools on offer as OpenAI's function calling takes them."""
        return formats.openai(self.specs, api)

    def anthropic(self) -> list[Json]:
        """Return the tools on offer as Anthropic's Messages API takes them."""
        return formats.anthropic(self.specs)

    def prompt(self, mode: PromptMode = "full") -> str:
        """Return the section for the system prompt; empty in minimal mode."""
        return memory_prompt(
            self.memory, mode=mode, tools=[spec.name for spec in self.specs], citations=self.citations, chat=self.chat
        )

    def call(self, name: str, arguments: Mapping[str, Any] | str | None = None) -> ToolResult:
        """Run a tool; whatever goes wrong is a result that says what to do next. Arguments may be JSON text."""
        try:
            if name not in {spec.name for spec in self.specs}:
                offered = ", ".join(spec.name for spec in self.specs)
                raise QueryError(f"no tool is called {name!r}", hint=f"call one of {offered}")
            checked = checked_arguments(BY_NAME[name], _parsed(arguments))
            return ToolResult(self._work[name](**{_python_name(key): value for key, value in checked.items()}))
        except NotewellError as error:
            return ToolResult(error_document(error), is_error=True)
        except OSError as error:
            return ToolResult(error_document(system_error(error)), is_error=True)

    # --- the tools -------------------------------------------------------------------------------

    def _search(self, query: str, **options: Unpack[SearchOptions]) -> Json:
        source = options.get("source")
        if source is not None and source not in self.memory.settings.sources:
            raise QueryError(
                f"this memory holds no {source}", hint="leave `source` out, or add it to `sources` in the settings"
            )
        options["chat"] = self.chat
        answer = self.memory.search(query, **options)
        budget = self.memory.settings.tools.injected_chars
        hits = injected_hits(answer.hits, budget=budget, cited=self.cited)
        document = search_document(answer) | {"hits": hits}
        left_out = answer.hits[len(hits) :]
        if left_out:
            where = ", ".join(f"{hit.path} from {hit.first_line}" for hit in left_out[:5])  # five are a short line
            document["notes"].append(
                f"{len(left_out)} more hits are beyond the {budget:,} characters of one search; "
                f"read them with {GET.name}: {where}"
            )
        return document

    def _get(self, path: str, *, first_line: int = 1, lines: int | None = None) -> Json:
        note = self.memory.get(path, first_line=first_line, lines=lines, chat=self.chat)
        if not note.line_count and first_line > 1:
            raise QueryError(
                f"{note.path} ends before line {first_line}",
                hint=f"call {GET.name} without `from` to read its beginning",
            )
        return note_document(note) | {"text": fenced_note(note, cited=self.cited)}

    def _status(self) -> Json:
        document = status_document(self.memory.status())
        if self.chat == "group":  # where the owner keeps the memory is none of a group's business
            return {name: document[name] for name in STATUS.result["properties"]}
        return document

    def _append(self, text: str, *, path: str | None = None) -> Json:
        done = self.memory.remember(text, to=path, source="an agent's tool", chat=self.chat)
        document = remembered_document(done)
        document["known"] = [known | {"text": fence(known["text"], known["citation"])} for known in document["known"]]
        return document


_PYTHON_NAMES = {"from": "first_line"} | {
    option.tool: name for name, option in declared_options().items() if option.tool
}


def _python_name(key: str) -> str:
    return _PYTHON_NAMES.get(key, key)


def _parsed(arguments: Mapping[str, Any] | str | None) -> object:
    if not isinstance(arguments, str):
        return arguments
    try:
        return json.loads(arguments) if arguments.strip() else {}
    except ValueError as error:
        raise QueryError(f"the arguments are not valid JSON: {error}", hint="send one JSON object") from error
