"""The client against real sockets: answers, failures, tries, deadlines, cancelling, and what is never shown."""

from __future__ import annotations

import logging
import os
import signal
import socket
import subprocess
import sys
import threading
import traceback
from concurrent.futures import CancelledError

import pytest

from notewell.embedding.http_calls import INTERACTIVE, RemoteFailure, RetryPolicy, Service
from notewell.embedding.http_client import Call, RemoteClient
from tests.fakes.loopback import Reply, json_reply

from .server import serving

stamina = pytest.importorskip("stamina", reason="the extra `remote` is not installed")

KEY = "sk-secret-0451"
CALL = Call("/things", {"a": 1})
DEFAULT = RetryPolicy()


def asked(client, call=CALL, *, timeout_s=5.0, retries=DEFAULT):
    return client.ask_json(call, timeout_s=timeout_s, retries=retries)


def client_of(url, **headers):
    return RemoteClient(Service("Acme", url, {"Authorization": f"Bearer {KEY}", **headers}))


def failing(client, **options):
    with pytest.raises(RemoteFailure) as raised:
        asked(client, **options)
    told = "".join(traceback.format_exception(raised.value)) + repr(client.service) + raised.value.detail
    assert KEY not in told
    return raised.value


def test_a_call_and_its_answer():
    with serving(json_reply({"b": 2})) as server, client_of(server.url, X_Team="memory") as client:
        assert asked(client) == {"b": 2}
    (request,) = server.requests
    assert (request.method, request.path, request.json) == ("POST", "/things", {"a": 1})
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert request.headers["x_team"] == "memory"


def test_connections_are_kept_open():
    with serving() as server, client_of(server.url) as client:
        for _ in range(5):
            asked(client)
    assert len({request.connection for request in server.requests}) == 1


def test_a_closed_client_opens_again():
    with serving() as server:
        client = client_of(server.url)
        asked(client)
        client.close()
        asked(client)
        client.close()
        client.close()
    assert len(server.requests) == 2


def test_no_thread_is_left_and_none_is_started_for_nothing():
    before = threading.active_count()
    with serving() as server, client_of(server.url) as client:
        with_server = threading.active_count()
        client_of(server.url).close()
        assert threading.active_count() == with_server
        asked(client)
    assert threading.active_count() == before


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_passing_fault_is_tried_again(status):
    with serving(Reply(status), Reply(status)) as server, client_of(server.url) as client:
        assert asked(client) == {}
    assert len(server.requests) == 3


@pytest.mark.parametrize("manner", ["reset"])
def test_a_connection_that_breaks_is_tried_again(manner):
    with serving(Reply(manner=manner)) as server, client_of(server.url) as client:
        assert asked(client) == {}
    assert len(server.requests) == 2


def test_the_wait_that_the_provider_asks_for_counts_and_not_our_own():
    slow = RetryPolicy(first_wait_s=600, max_wait_s=600)  # the test would not end in time
    told_to_come_at_once = json_reply({}, status=429, Retry_After="0")
    with stamina.set_testing(False), serving(told_to_come_at_once) as server, client_of(server.url) as client:
        assert asked(client, retries=slow) == {}
    assert len(server.requests) == 2


def test_three_tries_and_no_more():
    with serving(always=Reply(503)) as server, client_of(server.url) as client:
        assert failing(client).kind == "server"
    assert len(server.requests) == 3


@pytest.mark.parametrize("status", [302, 400, 401, 403, 404, 422])
def test_a_refusal_is_one_call(status):
    refusal = json_reply({"error": f"no, {KEY}"}, status=status, Location="http://127.0.0.1:1/")
    with serving(always=refusal) as server, client_of(server.url) as client:
        failing(client)
    assert len(server.requests) == 1


@pytest.mark.slow
@pytest.mark.parametrize("manner", ["hang", "hang_mid_body"])
def test_silence_is_bounded_and_told(manner):
    with serving() as server, client_of(server.url) as client:
        asked(client, Call("/warm"))  # the connection is there: only the answer is waited for
        server.always = Reply(body=b"{}", manner=manner)
        found = failing(client, timeout_s=0.5, retries=INTERACTIVE)
    assert (found.kind, len(server.requests)) == ("timeout", 2)
    assert "0.5 s" in found.message


def test_nobody_there():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with client_of(f"http://127.0.0.1:{port}/v1") as client:
        found = failing(client)
    assert found.kind == "unreachable"
    assert f"127.0.0.1:{port}/v1" in found.message


@pytest.mark.parametrize("address", ["http://[nonsense", "http:///", "http://a\x01b", "http://127.0.0.1:99999999"])
def test_an_address_that_is_none(address):
    with client_of(address) as client:
        assert failing(client).kind == "unreachable"


def test_a_login_in_the_address_is_sent_and_never_shown():
    with serving() as server, RemoteClient(Service("Acme", server.url.replace("//", f"//ana:{KEY}@"))) as client:
        asked(client)
        assert client.service.address == server.url
        assert KEY not in repr(client.service)
    assert server.requests[0].headers["authorization"].startswith("Basic ")


def test_an_address_of_somebody_else_is_not_called():
    with serving() as other, serving() as server, client_of(server.url) as client:
        assert asked(client, Call(f"{server.url}/own")) == {}
        found = failing(client, call=Call(f"{other.url}/upload"))
    assert found.kind == "invalid_response"
    assert other.requests == []


def test_nothing_is_logged_that_holds_the_key(caplog):
    caplog.set_level(logging.DEBUG)
    with serving(Reply(500), Reply(401, b"no " + KEY.encode())) as server, client_of(server.url) as client:
        failing(client)
    assert caplog.records
    assert KEY not in caplog.text


def test_closing_cancels_pending_calls():
    with serving(always=Reply(manner="hang")) as server:
        client = client_of(server.url)
        future = client.submit(client.answer(CALL, timeout_s=60, retries=RetryPolicy(), read=lambda reply: reply))
        while not server.requests:
            threading.Event().wait(0.01)
        client.close()
        with pytest.raises(CancelledError):
            future.result(timeout=5)
    assert len(server.requests) == 1  # a call that was cancelled is not tried again


CTRL_C = """
import sys
from notewell.embedding.http_client import Call, RemoteClient
from notewell.embedding.http_calls import RetryPolicy
from notewell.embedding.http_calls import Service
with RemoteClient(Service("Acme", sys.argv[1])) as client:
    print("asking", flush=True)
    client.ask_json(Call("/things", {}), timeout_s=600, retries=RetryPolicy())
"""


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="Windows sends Ctrl-C to whole groups of processes")
def test_ctrl_c_ends_a_call_at_once():
    with serving(always=Reply(manner="hang")) as server:
        process = subprocess.Popen(
            [sys.executable, "-c", CTRL_C, server.url], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        while not server.requests:
            assert process.poll() is None
            threading.Event().wait(0.01)
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=30)  # the call itself would take ten minutes
    assert "KeyboardInterrupt" in told
    assert "exception was never retrieved" not in told


SILENT = """
import sys
import notewell.embedding as hooks
if sys.argv[2] == "silent":
    hooks.silence_retries()
from notewell.embedding.http_client import Call, RemoteClient
from notewell.embedding.http_calls import RetryPolicy
from notewell.embedding.http_calls import Service
import logging
logging.basicConfig(level=logging.INFO)
with RemoteClient(Service("Acme", sys.argv[1])) as client:
    client.ask_json(Call("/things", {}), timeout_s=60, retries=RetryPolicy(first_wait_s=0, jitter_s=0))
"""


@pytest.mark.slow
@pytest.mark.parametrize(("choice", "announced"), [("silent", False), ("as it is", True)])
def test_a_command_announces_no_tries_and_a_library_leaves_the_choice(choice, announced):
    with serving(Reply(500)) as server:
        done = subprocess.run(
            [sys.executable, "-c", SILENT, server.url, choice], capture_output=True, text=True, timeout=60, check=True
        )
    assert ("stamina" in done.stderr) is announced
    assert done.stdout == ""
