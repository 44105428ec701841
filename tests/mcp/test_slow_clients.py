"""Clients that send too slowly, or nothing any more: connections and sessions are given up after a time."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from urllib.parse import urlsplit

import httpx
import pytest

pytestmark = pytest.mark.slow

LIMIT_S = 1.0
SCRIPT = f"""
import sys
from notewell.mcp import transports
transports.HEADER_TIMEOUT_S = transports.BODY_TIMEOUT_S = transports.SESSION_IDLE_S = {LIMIT_S}
from notewell.cli.main import run
sys.exit(run(["mcp", "--http", "--port", "0", "-w", sys.argv[1]]))
"""
ASKED = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
}
ACCEPT = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}


@pytest.fixture
def served(workspace):
    process = subprocess.Popen([sys.executable, "-c", SCRIPT, str(workspace)], stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    try:
        line = process.stderr.readline()
        yield "http://" + line.split("http://")[1].split()[0].rstrip(".,;")
    finally:
        process.terminate()
        process.wait(10)
        process.stderr.close()


def connected(served):
    parts = urlsplit(served)
    return socket.create_connection((parts.hostname, parts.port), timeout=20)


def seconds_until_closed(line, drip=b""):
    """Return how long the server kept the connection, and what it answered; a byte of `drip` is sent now and then."""
    started, received = time.monotonic(), b""
    line.settimeout(0.2)
    while time.monotonic() - started < 15:
        try:
            piece = line.recv(4096)
            if not piece:
                break
            received += piece
        except TimeoutError:
            if drip:
                try:
                    line.sendall(drip)
                except OSError:
                    break
        except ConnectionError:
            break
    return time.monotonic() - started, received


@pytest.mark.parametrize("drip", [b"", b"X"], ids=["silent", "a byte at a time"])
@pytest.mark.parametrize("sent", [b"", b"POST /mcp HTTP/1.1\r\nHost: 127."], ids=["nothing", "half a head"])
def test_a_head_that_does_not_come_ends_the_connection(served, sent, drip):
    with connected(served) as line:
        line.sendall(sent)
        took, _ = seconds_until_closed(line, drip)
    assert took < LIMIT_S + 5


def test_a_second_head_on_the_same_connection_has_a_limit_too(served):
    with connected(served) as line:
        line.sendall(b"GET /nowhere HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        assert line.recv(4096).startswith(b"HTTP/1.1 404")
        line.sendall(b"GET /nowhere HT")
        took, _ = seconds_until_closed(line, b"X")
    assert took < LIMIT_S + 5


@pytest.mark.parametrize("drip", [b"", b"x"], ids=["silent", "a byte at a time"])
def test_a_body_that_does_not_come_is_refused(served, drip):
    with connected(served) as line:
        line.sendall(
            b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: 5000\r\n\r\n{"
        )
        took, answer = seconds_until_closed(line, drip)
    assert answer.startswith(b"HTTP/1.1 408")
    assert b"did not arrive" in answer
    assert took < LIMIT_S + 5


def test_a_session_that_is_idle_expires(served):
    answer = httpx.post(served, json=ASKED, headers=ACCEPT)
    assert answer.status_code == 200
    session = {**ACCEPT, "Mcp-Session-Id": answer.headers["mcp-session-id"], "Mcp-Protocol-Version": "2025-11-25"}
    ping = {"jsonrpc": "2.0", "id": 2, "method": "ping"}
    assert httpx.post(served, json=ping, headers=session).status_code == 200
    time.sleep(LIMIT_S * 3)
    assert httpx.post(served, json=ping, headers=session).status_code == 404


def test_a_slow_answer_is_not_a_slow_request(served):
    """The time limits are for what the client sends: a stream that it listens to stays open."""
    answer = httpx.post(served, json=ASKED, headers=ACCEPT)
    session = {**ACCEPT, "Mcp-Session-Id": answer.headers["mcp-session-id"], "Mcp-Protocol-Version": "2025-11-25"}
    with httpx.stream("GET", served, headers=session, timeout=20) as stream:
        assert stream.status_code == 200
        for _ in range(6):
            time.sleep(LIMIT_S / 2)
            listed = httpx.post(served, json=ASKED | {"method": "tools/list", "params": {}}, headers=session)
            assert listed.status_code == 200
            assert "memory_search" in json.dumps(listed.text)
