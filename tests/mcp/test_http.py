"""`notewell mcp --http`: both generations, and a door that opens only to those it is meant for."""

from __future__ import annotations

import asyncio
import http.client
import json
import socket
from itertools import product
from urllib.parse import urlsplit

import httpx
import pytest

from mcp import Client
from notewell.mcp.transports import Guard, is_loopback

from .conftest import http_server

pytestmark = pytest.mark.slow

TOKEN = "correct horse battery staple"
ASKED = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
}
ROUTES = [
    ("POST", "/mcp"),
    ("GET", "/mcp"),
    ("DELETE", "/mcp"),
    ("OPTIONS", "/mcp"),
    ("POST", "/mcp/"),
    ("GET", "/"),
    ("GET", "/health"),
    ("POST", "/register"),
    ("GET", "/.well-known/oauth-protected-resource/mcp"),
    ("PUT", "/anything/at/all"),
]
WRONG_HOSTS = [
    "evil.example",
    "evil.example:{port}",
    "127.0.0.1.evil.example:{port}",
    "localhost.evil.example",
    "127.0.0.1:1",
    "127.0.0.1:{port}@evil.example",
    "evil.example@127.0.0.1:{port}",
    "127.0.0.1:{port}/evil",
    "127.0.0.1:port",
    "192.168.0.1:{port}",
    "0.0.0.0:{port}",
    "[::2]:{port}",
    "[::1",
    "",
]
WRONG_ORIGINS = [
    "http://evil.example",
    "https://127.0.0.1.evil.example:{port}",
    "http://localhost:3000",
    "http://localhost",
    "https://[::1]",
    "http://evil.example@127.0.0.1:{port}",
    "null",
    "file://",
    "chrome-extension://abcdefgh",
    "http://192.168.0.1:{port}",
    "127.0.0.1:{port}",
]
WRONG_TOKENS = [
    "",
    "Bearer",
    "Bearer ",
    "Bearer wrong",
    f"Basic {TOKEN}",
    TOKEN,
    f"Bearer {TOKEN}x",
    f"Bearer {TOKEN[:-1]}",
]


def ask(address, method, path, headers):
    """Send one request exactly as given, and return status and body."""
    parts = urlsplit(address)
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=30)
    try:
        connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
        body = json.dumps(ASKED).encode() if method == "POST" else b""
        usual = [("Content-Type", "application/json"), ("Accept", "application/json, text/event-stream")]
        for name, value in [*headers, *usual, ("Content-Length", str(len(body)))]:
            connection.putheader(name, value)
        connection.endheaders(body)
        answer = connection.getresponse()
        streamed = answer.getheader("content-type", "").startswith("text/event-stream") and method == "GET"
        return answer.status, b"" if streamed else answer.read()
    finally:
        connection.close()


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_the_sdk_client(indexed, mode):
    async def talk(address):
        async with Client(address, mode=mode) as client:
            found = await client.call_tool("memory_search", {"query": "guest network"})
            refused = await client.call_tool("memory_get", {"path": "../secret.md"})
            file = await client.read_resource("memory://file/memory/network.md")
            return client.protocol_version, found, refused, file.contents[0].text

    with http_server(indexed) as address:
        version, found, refused, text = asyncio.run(asyncio.wait_for(talk(address), 60))
    assert version == ("2025-11-25" if mode == "legacy" else "2026-07-28")
    assert found.structured_content["hits"][0]["path"] == "memory/network.md"
    assert refused.is_error
    assert "heron-guest" in text


def test_many_clients_of_one_server(indexed):
    async def one(address, number):
        async with Client(address, mode=["legacy", "auto"][number % 2]) as client:
            words = ("printer", "queue", "PostgreSQL", "tea")
            found = [await client.call_tool("memory_search", {"query": word}) for word in words]
            return [each.structured_content["hits"][0]["path"] for each in found]

    async def talk(address):
        return await asyncio.gather(*(one(address, number) for number in range(6)))

    with http_server(indexed) as address:
        found = asyncio.run(asyncio.wait_for(talk(address), 60))
    expected = ["memory/network.md", "memory/projects/queue.md", "memory/2026-11-01.md", "MEMORY.md"]
    assert found == [expected] * 6


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """One server with a token, for the many that it turns away."""
    workspace = tmp_path_factory.mktemp("served")
    (workspace / "MEMORY.md").write_text("the secret is a pelican\n", encoding="utf-8")
    with http_server(workspace, NOTEWELL_MCP__TOKEN=TOKEN) as address:
        yield address


def test_the_door_opens_to_who_is_meant(served):
    port = urlsplit(served).port
    token = ("Authorization", f"Bearer {TOKEN}")
    for host in (f"127.0.0.1:{port}", f"localhost:{port}", f"LOCALHOST:{port}", f"[::1]:{port}", "localhost"):
        status, body = ask(served, "POST", "/mcp", [("Host", host), token])
        assert status == 200, (host, body)
    for origin in (f"http://127.0.0.1:{port}", f"http://localhost:{port}"):
        assert ask(served, "POST", "/mcp", [("Host", f"127.0.0.1:{port}"), ("Origin", origin), token])[0] == 200
    assert ask(served, "POST", "/mcp", [("Host", f"127.0.0.1:{port}"), ("authorization", f"bearer {TOKEN}")])[0] == 200


def test_a_page_behind_a_proxy_on_this_machine_is_our_own(served):
    headers = [("Host", "localhost"), ("Origin", "https://localhost"), ("Authorization", f"Bearer {TOKEN}")]
    assert ask(served, "POST", "/mcp", headers)[0] == 200


def test_a_token_may_have_any_characters(indexed):
    with http_server(indexed, NOTEWELL_MCP__TOKEN="schlüssel-鍵") as address:
        host = ("Host", urlsplit(address).netloc)
        assert ask(address, "POST", "/mcp", [host, ("Authorization", "Bearer schlüssel-鍵".encode())])[0] == 200
        assert ask(address, "POST", "/mcp", [host, ("Authorization", "Bearer schlüssel-")])[0] == 401


@pytest.mark.parametrize(("method", "path"), ROUTES, ids=lambda value: value)
def test_every_route_turns_away_the_others(served, method, path):
    port = urlsplit(served).port
    host = ("Host", f"127.0.0.1:{port}")
    token = ("Authorization", f"Bearer {TOKEN}")
    attempts = [
        *((421, [("Host", wrong.format(port=port)), token]) for wrong in WRONG_HOSTS),
        *((403, [host, ("Origin", wrong.format(port=port)), token]) for wrong in WRONG_ORIGINS),
        *((401, [host, ("Authorization", wrong)]) for wrong in WRONG_TOKENS),
        (401, [host]),
        (401, [host, token, ("Authorization", "Bearer wrong")]),
        (403, [host, ("Origin", f"http://127.0.0.1:{port}"), ("Origin", "http://evil.example"), token]),
    ]
    for expected, headers in attempts:
        status, body = ask(served, method, path, headers)
        assert status == expected, headers
        assert b"pelican" not in body
        assert "message" in json.loads(body)["error"] or method == "HEAD"


def test_requests_without_a_host_or_with_two(served):
    parts = urlsplit(served)
    for hosts in (b"", f"Host: 127.0.0.1:{parts.port}\r\nHost: evil.example\r\n".encode()):
        with socket.create_connection((parts.hostname, parts.port), timeout=30) as line:
            head = b"POST /mcp HTTP/1.1\r\n" + hosts + f"Authorization: Bearer {TOKEN}\r\n".encode()
            line.sendall(head + b"Content-Length: 0\r\nConnection: close\r\n\r\n")
            status = int(line.makefile("rb").readline().split()[1])
        assert status in {400, 421}


def test_a_body_beyond_reason_is_refused(served):
    port = urlsplit(served).port
    answer = httpx.post(
        served,
        content=b"x" * (2 << 20),
        headers={"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json", "Host": f"127.0.0.1:{port}"},
    )
    assert answer.status_code == 413


# --- where it listens ---------------------------------------------------------------------------


def test_beyond_this_machine_a_token_is_needed(notewell, indexed):
    for host in ("0.0.0.0", "::", "192.0.2.1", "example.org"):
        done = notewell("mcp", "--http", "--host", host, "-w", indexed)
        assert done.code == 1
        assert "needs a token" in done.err
        assert "NOTEWELL_MCP__TOKEN" in done.err


def test_a_port_that_is_taken_is_an_error(notewell, indexed):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        done = notewell("mcp", "--http", "--port", taken.getsockname()[1], "-w", indexed)
    assert done.code == 1
    assert "cannot listen at 127.0.0.1" in done.err
    assert "another --port" in done.err


def test_at_every_address_with_a_token_and_a_name(indexed):
    words = ("--host", "0.0.0.0", "--allow-host", "memory.example")
    with http_server(indexed, *words, NOTEWELL_MCP__TOKEN=TOKEN) as announced:
        address = announced.replace("0.0.0.0", "127.0.0.1")
        port = urlsplit(address).port
        token = ("Authorization", f"Bearer {TOKEN}")
        for host, status in (
            (f"127.0.0.1:{port}", 200),
            ("10.1.2.3", 200),  # an address of ours, for all we know; no web page can make up one
            ("memory.example", 200),
            ("evil.example", 421),
            ("memory.example.evil.example", 421),
        ):
            assert ask(address, "POST", "/mcp", [("Host", host), token])[0] == status, host
            assert ask(address, "POST", "/mcp", [("Host", host)])[0] == (401 if status == 200 else 421), host


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("localhost", True),
        ("::1", True),
        ("[::1]", True),
        ("0.0.0.0", False),
        ("::", False),
        ("192.168.1.4", False),
        ("localhost.evil.example", False),
    ],
)
def test_what_only_this_machine_reaches(host, expected):
    assert is_loopback(host) is expected


def test_a_web_socket_is_turned_away_and_lifespan_passes():
    passed, sent = [], []

    async def application(scope, receive, send):
        passed.append(scope["type"])

    async def send(message):
        sent.append(message["type"])

    guard = Guard(application, frozenset({"localhost"}), 80)

    async def talk():
        for kind, host in product(("websocket", "lifespan"), (b"localhost", b"evil")):
            await guard({"type": kind, "headers": [(b"host", host)]}, None, send)

    asyncio.run(talk())
    assert passed == ["lifespan", "lifespan"]
    assert sent == ["websocket.close", "websocket.close"]
