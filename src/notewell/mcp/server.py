"""Implements the MCP server: tools, resources, prompts and instructions, limited to what the chat may see."""

from __future__ import annotations

import json
import logging
import threading
import time
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

import anyio
import anyio.to_thread
from mcp.server.caching import CacheHint
from mcp.server.lowlevel.server import Server
from mcp.shared.exceptions import MCPError

from notewell import Citation, NotewellError, PathRefusedError, QueryError, __version__
from notewell.agents.documents import document_of
from notewell.agents.tools.prompt import fence
from notewell.agents.tools.schemas import GET, SEARCH
from notewell.errors import system_error

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
    from mcp_types import CallToolRequestParams, GetPromptRequestParams, ReadResourceRequestParams

    from notewell import Memory
    from notewell.agents.tools import MemoryTools, ToolSpec
    from notewell.reports import SessionContext

    Context = ServerRequestContext[Any, Any]

INVALID_PARAMS = -32602  # JSON-RPC
RESOURCE_NOT_FOUND = -32002  # MCP before 2026-07-28, which uses INVALID_PARAMS
MODERN = "2026-07-28"
COMPLETE: dict[str, Any] = {"resultType": "complete"}  # required since 2026-07-28; the SDK leaves it out before that
LISTING_METHODS = ("tools/list", "prompts/list", "resources/list", "resources/templates/list")
THREADS = 8  # concurrent calls in one server; more SQLite readers would only wait for the processor
PROGRESS_EVERY_S = 0.25
RECALL: dict[str, Any] = {
    "name": "recall",
    "title": "Recall",
    "description": "Answer a question from long-term memory",
    "arguments": [{"name": "question", "description": "What you want to know", "required": True}],
}

START: dict[str, Any] = {
    "name": "start",
    "title": "Start a session",
    "description": "What to know at the start of a session: MEMORY.md and the notes of today and yesterday",
    "arguments": [],
}
IDLE = "This project has no memory. `notewell init` in its folder makes one; then connect again."
PROMPTS = {prompt["name"]: prompt for prompt in (RECALL, START)}
PREFIX = "memory://file/"
MIME_TYPE = "text/markdown"
TEMPLATE: dict[str, Any] = {
    "uriTemplate": PREFIX + "{+path}",
    "name": "memory file",
    "description": "A memory file by its path, such as MEMORY.md or memory/topic.md",
    "mimeType": MIME_TYPE,
}
STATUS: dict[str, Any] = {
    "uri": "memory://status",
    "name": "status",
    "description": "What the memory holds, whether it is up to date and how it is searched",
    "mimeType": "application/json",
}
_UNQUOTED = "/!$&'()*+,;=:@"  # characters that need no quoting in a URI's path, RFC 3986

_log = logging.getLogger(__name__)


class MemoryServer:
    """Answers MCP requests from one memory; the protocol itself is the SDK's."""

    def __init__(self, tools: MemoryTools) -> None:
        self.tools = tools
        self._started_at: float | None = None  # on the monotonic clock
        self._sync_started = threading.Event()  # also set if the background sync could not start
        self._in_thread = partial(
            anyio.to_thread.run_sync, abandon_on_cancel=True, limiter=anyio.CapacityLimiter(THREADS)
        )
        self.protocol: Server[Any] = Server(
            "notewell",
            version=__version__,
            title="Notewell memory",
            cache_hints=dict.fromkeys(LISTING_METHODS, CacheHint()),  # type: ignore[arg-type]
            on_list_tools=self._list_tools,  # type: ignore[arg-type]
            on_call_tool=self._call_tool,  # type: ignore[arg-type]
            on_list_resources=self._list_resources,  # type: ignore[arg-type]
            on_list_resource_templates=self._list_templates,  # type: ignore[arg-type]
            on_read_resource=self._read_resource,  # type: ignore[arg-type]
            on_list_prompts=self._list_prompts,  # type: ignore[arg-type]
            on_get_prompt=self._get_prompt,  # type: ignore[arg-type]
        )
        self.protocol.middleware.append(self._live_instructions)

    def instructions(self) -> str:
        """Return the instructions for the client's model, based on the current state of the memory."""
        try:
            return self.tools.prompt()
        except OSError as error:
            failure = system_error(error)
        except NotewellError as error:
            failure = error
        return f"The memory cannot be used at the moment: {failure.message}. Next step: {failure.hint}"

    async def _live_instructions(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        result = await call_next(ctx)
        if ctx.method in {"initialize", "server/discover"} and isinstance(result, dict):
            return result | {"instructions": await self._in_thread(self.instructions)}
        self._start_sync()  # after the first response, which a starting client waits for
        return result

    def _start_sync(self) -> float:
        """Start the background sync, once; return when it was started."""
        if self._started_at is None:
            self._started_at = time.monotonic()
            threading.Thread(target=keep_synced, args=(self.tools.memory, self._sync_started), daemon=True).start()
        return self._started_at

    # --- tools -----------------------------------------------------------------------------------

    async def _list_tools(self, _ctx: Context, _params: object) -> dict[str, Any]:
        return COMPLETE | {"tools": [tool_document(spec) for spec in self.tools.specs]}

    async def _call_tool(self, ctx: Context, params: CallToolRequestParams) -> dict[str, Any]:
        if params.name == SEARCH.name:
            await self._show_indexing(ctx)
        result = await self._in_thread(self.tools.call, params.name, params.arguments)
        content = [{"type": "text", "text": result.text}]
        if result.is_error:
            return COMPLETE | {"content": content, "isError": True}
        return COMPLETE | {"content": content, "structuredContent": result.document, "isError": False}

    async def _show_indexing(self, ctx: Context) -> None:
        """Report indexing progress to the client while the first searches wait for the background sync."""
        memory, shown = self.tools.memory, -1
        left_s = memory.settings.sync.search_budget_ms / 1000 - (time.monotonic() - self._start_sync())
        with anyio.move_on_after(left_s), suppress(NotewellError):  # the search reports it
            await self._in_thread(self._sync_started.wait, left_s)
            while not await self._in_thread(memory.wait_until_synced, PROGRESS_EVERY_S):
                done, total, message = await self._in_thread(_progress, memory)
                if done > shown:  # progress may only grow
                    shown = done
                    await ctx.session.report_progress(done, total, message)

    # --- resources -------------------------------------------------------------------------------

    async def _list_resources(self, _ctx: Context, _params: object) -> dict[str, Any]:
        return COMPLETE | {"resources": await self._or_error(memory_resources, self.tools)}

    async def _list_templates(self, _ctx: Context, _params: object) -> dict[str, Any]:
        return COMPLETE | {"resourceTemplates": [TEMPLATE]}

    async def _read_resource(self, ctx: Context, params: ReadResourceRequestParams) -> dict[str, Any]:
        code = INVALID_PARAMS if ctx.protocol_version >= MODERN else RESOURCE_NOT_FOUND
        contents = await self._or_error(memory_resource, self.tools, str(params.uri), code=code)
        return COMPLETE | {"contents": [contents], "ttlMs": 0, "cacheScope": "private"}

    # --- prompts ---------------------------------------------------------------------------------

    async def _list_prompts(self, _ctx: Context, _params: object) -> dict[str, Any]:
        return COMPLETE | {"prompts": list(PROMPTS.values())}

    async def _get_prompt(self, ctx: Context, params: GetPromptRequestParams) -> dict[str, Any]:
        if params.name not in PROMPTS:
            raise MCPError(INVALID_PARAMS, f"unknown prompt {params.name!r}; there are {' and '.join(PROMPTS)}")
        about: dict[str, Any] = {}
        if params.name == START["name"]:
            context = await self._or_error(self.tools.session_context)
            files = [document_of(file) | {"truncated": file.truncated} for file in context.files]
            text, about = start_message(context), {"_meta": {"notewell/files": files}}
        else:
            await self._show_indexing(ctx)
            text = await self._or_error(recall_text, self.tools, params.arguments or {})
        message = {"role": "user", "content": {"type": "text", "text": text}}
        return COMPLETE | {"description": PROMPTS[params.name]["description"], "messages": [message], **about}

    # --- threads ---------------------------------------------------------------------------------

    async def _or_error(self, work: Callable[..., Any], *args: Any, code: int = INVALID_PARAMS) -> Any:
        """Do the work in a thread; a notewell error becomes an MCP error with its hint."""
        try:
            return await self._in_thread(work, *args)
        except OSError as error:
            failure = system_error(error)
        except NotewellError as error:
            failure = error
        raise MCPError(code, f"{failure.message}; {failure.hint}", {"kind": failure.kind, "hint": failure.hint})


def idle_protocol() -> Server[Any]:
    """Return a server without tools, for a project that has no workspace: connecting to it succeeds."""

    async def list_tools(_ctx: Context, _params: object) -> dict[str, Any]:
        return COMPLETE | {"tools": []}

    return Server(
        "notewell",
        version=__version__,
        title="Notewell memory",
        instructions=IDLE,
        cache_hints={"tools/list": CacheHint()},
        on_list_tools=list_tools,  # type: ignore[arg-type]
    )


def keep_synced(memory: Memory, started: threading.Event) -> None:
    """Start a sync of what changed since the last session and, if the settings say so, watch for changes."""
    try:
        memory.begin_session()
        started.set()
        if memory.settings.enabled and memory.settings.sync.watch:
            memory.watch()
    except (NotewellError, OSError) as error:  # every search reports it to the client
        _log.warning("the index is not kept up to date: %s", error)
    finally:
        started.set()


def _progress(memory: Memory) -> tuple[int, int | None, str]:
    """Return the number of chunks ready, the total, and a message."""
    status = memory.status()
    if not status.chunks:
        return 0, None, "indexing started"
    if status.embedder is None:
        return status.chunks, None, f"indexing: {status.chunks:,} chunks so far"
    ready = status.chunks - status.pending
    return ready, status.chunks, f"indexing: {ready:,} of {status.chunks:,} chunks embedded"


# --- resources and prompts -----------------------------------------------------------------------


def memory_resources(tools: MemoryTools) -> list[dict[str, Any]]:
    """Return the status and the memory files that this chat may see."""
    return [STATUS, *({"uri": uri_of(path), "name": path, "mimeType": MIME_TYPE} for path in tools.memory.files())]


def memory_resource(tools: MemoryTools, uri: str) -> dict[str, Any]:
    """Return the status, or the whole text of the file that the URI names, fenced with its path."""
    if uri == STATUS["uri"]:
        text = json.dumps(tools.status(), ensure_ascii=False, default=str)
        return {"uri": uri, "mimeType": STATUS["mimeType"], "text": text}
    if not uri.startswith(PREFIX):
        raise PathRefusedError(uri)
    try:
        path = unquote(uri.removeprefix(PREFIX), errors="strict")
    except UnicodeDecodeError:
        raise PathRefusedError(uri) from None
    cited = Citation.parse(path)
    pieces: list[str] = []
    next_line: int | None
    next_line, left = cited.lines_to_read()
    while next_line is not None and left != 0:
        piece = tools.memory.get(cited.path, first_line=next_line, lines=left)
        pieces.append(piece.text)
        next_line, left = piece.next_first_line, None if left is None else left - piece.line_count
    return {"uri": uri, "mimeType": MIME_TYPE, "text": fence("\n".join(pieces), path)}


def uri_of(path: str) -> str:
    """Return the URI of a memory file."""
    return PREFIX + quote(path, safe=_UNQUOTED)


def recall_text(tools: MemoryTools, arguments: Mapping[str, str]) -> str:
    """Return the message of the prompt `recall`: the question, and what a search finds."""
    question = arguments.get("question", "").strip()
    if not question:
        raise QueryError("recall needs a question", hint="give the argument `question`")
    result = tools.call(SEARCH.name, {"query": question})
    if result.is_error:
        error = result.document["error"]
        raise QueryError(error["message"], hint=error["hint"])
    found = result.document
    lines = [question, ""]
    if found["hits"]:
        cite = "Cite what you use as `Source: path#L5-L9`." if tools.cited else "Do not mention file paths."
        lines += [f"Answer from what long-term memory holds about it; {GET.name} reads on. {cite}", ""]
        lines += [f"{hit['snippet']}\n" for hit in found["hits"]]
    else:
        lines.append(f"Long-term memory was searched ({found['mode']} search) and holds nothing that fits: say so.")
    return "\n".join([*lines, *(f"Note: {note}" for note in found["notes"])]).rstrip()


def start_message(context: SessionContext) -> str:
    """Return the message of the prompt `start`."""
    text = context.text or "Long-term memory holds neither MEMORY.md nor notes of today and yesterday."
    return "\n".join([text, *(f"Note: {note}" for note in context.notes)])


def tool_document(spec: ToolSpec) -> dict[str, Any]:
    """Return a tool as the protocol lists it."""
    hints: dict[str, Any] = {"readOnlyHint": spec.read_only, "openWorldHint": False}
    if not spec.read_only:
        hints |= {"destructiveHint": spec.destructive, "idempotentHint": False}
    return {
        "name": spec.name,
        "title": spec.title,
        "description": spec.description,
        "inputSchema": spec.parameters,
        "outputSchema": spec.result,
        "annotations": hints,
    }
