"""300 paths that lead out of the memory, through every door of the server: all refused, nothing told."""

from __future__ import annotations

import asyncio
import json

import pytest
from mcp.shared.exceptions import MCPError

from mcp import Client
from tests.end_to_end.test_bad_input import escapes, fortress  # noqa: F401 - a fixture

from .conftest import http_server
from .wire import wire

pytestmark = pytest.mark.slow

SECRET = "secret content"


def sendable(paths: list[str]) -> list[str]:
    """Return the paths that a JSON text can carry; a lone surrogate is no text in any protocol."""
    return [path for path in paths if path.isprintable() or path.encode("utf-8", "ignore").decode() == path]


@pytest.mark.parametrize("generation", ["handshake", "2026-07-28"])
def test_on_stdio(fortress, generation):  # noqa: F811
    paths = sendable(escapes(fortress))
    assert len(paths) >= 300
    with wire(fortress / "workspace") as line:
        if generation == "handshake":
            line.shake_hands()
        else:
            line.discover()
        assert "top secret content" in line.call("memory_get", path="memory/a.md")["structuredContent"]["text"]
        own = {item["path"] for item in line.call("memory_list", maxResults=1000)["structuredContent"]["items"]}
        for path in paths:
            read = line.call("memory_get", path=path)
            assert json.loads(read["content"][0]["text"])["error"]["kind"] == "path_refused", path
            written = path and line.call("memory_write", text="A pelican was here.", path=path)  # "" is today's note
            assert not path or written["isError"] is True, path
            assert line.call("memory_forget", entry=f"{path}#L1")["isError"] is True, path
            assert line.call("memory_forget", entry=path)["isError"] is True, path
            listed = line.call("memory_list", path=path).get("structuredContent") or {"items": []}
            assert {item["path"] for item in listed["items"]} <= own, path
            resource = line.ask("resources/read", {"uri": f"memory://file/{path}"})
            assert resource["error"]["code"] in {-32002, -32602}, path
            assert SECRET not in json.dumps([read, written, resource])
    assert not [file for file in fortress.rglob("*.md") if file.is_file() and "pelican" in file.read_text("utf-8")]


def test_over_http(fortress):  # noqa: F811
    paths = sendable(escapes(fortress))

    async def talk(address):
        async with Client(address, mode="auto") as client:
            for path in paths:
                read = await client.call_tool("memory_get", {"path": path})
                assert read.is_error, path
                assert SECRET not in read.content[0].text
                with pytest.raises(MCPError) as refused:
                    await client.read_resource(f"memory://file/{path}")
                assert SECRET not in str(refused.value)

    with http_server(fortress / "workspace") as address:
        asyncio.run(asyncio.wait_for(talk(address), 120))


NO_FILE = [
    "file:///etc/passwd",
    "memory://other/MEMORY.md",
    "memory:file/MEMORY.md",
    "MEMORY://FILE/../x.md",
    "memory://file",
    "memory://file/",
    "memory://file/%2e%2e/outside/secret.md",
    "memory://file/memory%2F..%2F..%2Foutside%2Fsecret.md",
    "memory://file/%252e%252e/outside/secret.md",
    "memory://file/%ff%fe.md",
    "memory://file/memory/a.md?x=1",
    "memory://file/memory/none.md#L1",
]


def test_uris_that_are_no_memory_file(fortress):  # noqa: F811
    with wire(fortress / "workspace") as line:
        line.shake_hands()
        for uri in NO_FILE:
            answer = line.ask("resources/read", {"uri": uri})
            assert answer["error"]["code"] == -32002, uri
            assert SECRET not in json.dumps(answer)
