"""Runs the memory tools for a model."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Unpack

from notewell.agents.documents import (
    error_document,
    list_document,
    note_document,
    remembered_document,
    search_document,
    status_document,
)
from notewell.agents.tools import schemas
from notewell.agents.tools.prompt import fenced_note, injected_hits, injected_items, memory_prompt, shows_citations
from notewell.agents.tools.schemas import (
    BY_NAME,
    FORGET,
    GET,
    LIST,
    READING,
    SEARCH,
    WRITE,
    WRITING,
    checked_arguments,
    shown,
)
from notewell.errors import EntryNotFoundError, NotewellError, QueryError, system_error
from notewell.search.options import declared_options
from notewell.text.fences import fence
from notewell.text.redaction import redact

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from notewell.agents.documents import Json
    from notewell.agents.tools.prompt import Citations, PromptMode
    from notewell.agents.tools.schemas import OpenAiApi, ToolSpec
    from notewell.memory.memory import Memory
    from notewell.reports import SessionContext
    from notewell.search.options import SearchOptions
    from notewell.sources.privacy import Chat

PYTHON_NAMES = {"from": "first_line"} | {
    option.tool: name for name, option in declared_options().items() if option.tool
}
SHOWN_TO_GROUPS = ("files", "chunks", "pending", "mode", "stale")  # in the status
MAX_NAMED = 5  # hits that did not fit and are named in a note


ASK_THE_OWNER = "tell the person you work for: the memory needs their attention"
_BETWEEN_CLAUSES = re.compile(r"(; |: |[.] |, or )")
_COMMAND = re.compile(r"`(?:notewell|pip) ")


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The result of a tool call."""

    document: Json  # like the command's --json; {"error": {...}} on failure
    is_error: bool = False

    @property
    def text(self) -> str:
        """The document as compact JSON, for the message that answers the call."""
        return json.dumps(self.document, ensure_ascii=False, separators=(",", ":"), default=str)


class MemoryTools:
    """The tools of a memory for one kind of chat. Safe to use from several threads."""

    def __init__(
        self,
        memory: Memory,
        *,
        chat: Chat | None = None,
        citations: Citations | None = None,
        read_only: bool | None = None,
    ) -> None:
        settings = memory.settings.tools
        self.memory = memory.seen_by(chat=chat) if chat else memory
        self.chat: Chat = self.memory.audience.chat
        self.citations: Citations = citations or settings.citations
        self.read_only = settings.read_only if read_only is None else read_only
        self._work: Mapping[str, Callable[..., Json]] = {
            SEARCH.name: self._search,
            GET.name: self._get,
            LIST.name: self._list,
            WRITE.name: self._write,
            FORGET.name: self._forget,
        }

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        """The available tools; without those that write if the memory is read-only."""
        return READING if self.read_only else (*READING, *WRITING)

    @property
    def cited(self) -> bool:
        """Whether results carry citations."""
        return shows_citations(self.citations, self.chat)

    def openai(self, api: OpenAiApi = "chat") -> list[Json]:
        """Return the available tools for OpenAI's function calling."""
        return schemas.openai(self.specs, api)

    def anthropic(self) -> list[Json]:
        """Return the available tools for Anthropic's Messages API."""
        return schemas.anthropic(self.specs)

    def prompt(self, mode: PromptMode = "full") -> str:
        """Return the section for the system prompt; empty in minimal mode."""
        return memory_prompt(
            self.memory, mode=mode, tools=[spec.name for spec in self.specs], citations=self.citations, chat=self.chat
        )

    def session_context(self) -> SessionContext:
        """Return the context for a new session, as this chat may see it."""
        return self.memory.session_context(chat=self.chat)

    def call(self, name: str, arguments: Mapping[str, Any] | str | None = None) -> ToolResult:
        """Run a tool. Arguments may be JSON text; errors become results with a hint."""
        try:
            if name not in [spec.name for spec in self.specs]:
                offered = ", ".join(spec.name for spec in self.specs)
                raise QueryError(f"there is no tool {shown(name)}", hint=f"call one of {offered}")
            checked = checked_arguments(BY_NAME[name], _parsed(arguments))
            done = self._work[name](**{PYTHON_NAMES.get(key, key): value for key, value in checked.items()})
            if any("`" in note for note in done.get("notes", ())):
                done["notes"] = [without_commands(note) for note in done["notes"]]
            return ToolResult(done)
        except NotewellError as error:
            return _failed(error)
        except OSError as error:
            return _failed(system_error(error))

    # --- the tools -------------------------------------------------------------------------------

    def _search(self, query: str, **options: Unpack[SearchOptions]) -> Json:
        source = options.get("source")
        if source is not None and source not in self.memory.settings.sources:
            raise _not_held(source)
        options["chat"] = self.chat
        answer = self.memory.search(query, **options)
        budget = self.memory.settings.tools.injected_chars
        hits = injected_hits(answer.hits, budget=budget, cited=self.cited)
        document = search_document(answer) | {"hits": hits}
        left_out = answer.hits[len(hits) :]
        if left_out:
            where = ", ".join(f"{hit.path} from {hit.first_line}" for hit in left_out[:MAX_NAMED])
            document["notes"].append(
                f"{len(left_out)} more hits did not fit into the {budget:,} characters of one search; "
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

    def _list(self, **options: Any) -> Json:
        if options.get("source") not in {None, *self.memory.settings.sources}:
            raise _not_held(options["source"])
        found = self.memory.list(**options)
        document = list_document(found)
        document["items"] = injected_items(
            document["items"], budget=self.memory.settings.tools.injected_chars, cited=self.cited
        )
        return document

    def _write(self, text: str, *, path: str | None = None, **options: Any) -> Json:
        done = self.memory.remember(text, to=path, source="an agent's tool", **options)
        document = remembered_document(done)
        document["known"] = [known | {"text": fence(known["text"], known["citation"])} for known in document["known"]]
        return document

    def _forget(self, entry: str) -> Json:
        report = self.memory.forget(entry, one_entry=True)
        for problem in report.problems[:1] if not report.forgotten else ():
            raise QueryError(f"{problem.path}: {problem.reason}", hint=ASK_THE_OWNER)
        (forgotten,) = report.forgotten or (None,)
        if forgotten is None:
            raise EntryNotFoundError(entry)
        lines = [line.text for line in forgotten.lines]
        text = redact("\n".join(lines)).text
        return {
            "path": forgotten.path,
            "text": fence(text, forgotten.path),
            "undo": report.undo,
            "notes": [*report.notes, *(f"{problem.path}: {problem.reason}" for problem in report.problems)],
        }

    def status(self) -> Json:
        """Return the status, as this chat may see it."""
        document = status_document(self.memory.status())
        if self.chat == "group":  # paths and settings are private
            return {name: document[name] for name in SHOWN_TO_GROUPS}
        return document


def _not_held(source: str) -> QueryError:
    return QueryError(
        f"this memory holds no {source}", hint="leave `source` out, or add it to `sources` in the settings"
    )


def _failed(error: NotewellError) -> ToolResult:
    document = error_document(error)
    hint = document["error"]["hint"]
    if isinstance(error, EntryNotFoundError) and not error.count:
        hint = f"{LIST.name} returns the ids and citations of remembered entries"
    document["error"]["hint"] = without_commands(hint) or (ASK_THE_OWNER if hint else "")
    return ToolResult(document, is_error=True)


def without_commands(text: str) -> str:
    """Return a note or hint without commands for the user's shell, which an agent cannot run."""
    text = text.replace("until `notewell index` has embedded them", "until they are embedded")
    first, *others = _BETWEEN_CLAUSES.split(text)
    kept = "" if _COMMAND.search(first) else first
    for mark, clause in zip(others[::2], others[1::2], strict=True):
        if not _COMMAND.search(clause):
            kept += mark + clause if kept else clause
    return kept


def _parsed(arguments: Mapping[str, Any] | str | None) -> object:
    if not isinstance(arguments, str):
        return arguments
    try:
        return json.loads(arguments) if arguments.strip() else {}
    except ValueError as error:
        raise QueryError(f"the arguments are not valid JSON: {error}", hint="send one JSON object") from error
