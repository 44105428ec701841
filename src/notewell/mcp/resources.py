"""Offers the memory's files and its status as MCP resources, with the same permissions as the tools."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

from notewell import Citation, PathRefusedError
from notewell.agents.tools.prompt import fence

if TYPE_CHECKING:
    from notewell.agents.tools import MemoryTools

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


def memory_resources(tools: MemoryTools) -> list[dict[str, Any]]:
    """Return the status, and every memory file that this chat may see."""
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
