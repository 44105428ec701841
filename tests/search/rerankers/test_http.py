"""Rerankers behind HTTP, against a provider on real sockets that answers well, badly, late or not at all."""

from __future__ import annotations

import json
import socket
import threading
import traceback
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from notewell.embedding.http_calls import INTERACTIVE
from notewell.errors import RerankerError
from notewell.search.rerankers import APIS, HttpReranker

from .provider import COUNTS, PATHS, RESULTS, Reply, running

pytest.importorskip("httpx", reason="the extra `remote` is not installed")
stamina = pytest.importorskip("stamina", reason="the extra `remote` is not installed")

KEY = "secret-key-0451"
TEXTS = ["the cat sleeps", "guest wifi password is heron", "wifi channel 6"]
QUERY = "guest wifi password"


@pytest.fixture(params=sorted(APIS))
def provider(request):
    with running(request.param) as provider:
        yield provider


@pytest.fixture
def waits():
    """What is waited before each other try: the seconds asked for, or True for the usual wait. Nobody really waits."""
    asked = []
    stamina.instrumentation.set_on_retry_hooks([lambda details: asked.append(INTERACTIVE.decide(details.caused_by))])
    with stamina.set_testing(True, attempts=3, cap=True):
        yield asked
    stamina.instrumentation.set_on_retry_hooks(None)


@pytest.fixture
def reranker(provider, waits):
    return HttpReranker(provider.name, base_url=provider.url, key=KEY, timeout_s=5)


def results(provider, *pairs):
    listed = [{"index": index, "relevance_score": score} for index, score in pairs]
    return Reply(body=json.dumps({RESULTS[provider.name]: listed}).encode())


def failing(reranker, match):
    with pytest.raises(RerankerError, match=match) as raised:
        reranker.rerank(QUERY, TEXTS)
    assert raised.value.hint
    told = "".join(traceback.format_exception(raised.value)) + raised.value.hint
    assert KEY not in told
    assert not any(text in raised.value.message + raised.value.hint for text in (*TEXTS, QUERY))
    return raised.value


# --- the request and the answer ----------------------------------------------------------------


def test_scores_come_back_in_the_order_of_the_texts(reranker):
    assert reranker.rerank(QUERY, TEXTS) == pytest.approx([0, 1, 1 / 3])


def test_the_request_is_what_the_provider_documents(provider, reranker):
    reranker.rerank(QUERY, TEXTS)
    assert provider.paths == [PATHS[provider.name]]
    assert provider.requests == [
        {"model": APIS[provider.name].default_model, "query": QUERY, "documents": TEXTS, COUNTS[provider.name]: 3}
    ]
    assert provider.headers[0]["Authorization"] == f"Bearer {KEY}"
    assert provider.headers[0]["Content-Type"] == "application/json"


def test_a_model_and_an_address_of_your_own(provider):
    reranker = HttpReranker(provider.name, base_url=provider.url + "/", model="mine-2")
    reranker.rerank(QUERY, TEXTS)
    assert reranker.name == f"{provider.name}/mine-2"
    assert provider.requests[0]["model"] == "mine-2"
    assert provider.paths == [PATHS[provider.name]]
    assert "Authorization" not in provider.headers[0]


def test_nothing_to_look_at_is_no_call(provider, reranker):
    assert reranker.rerank(QUERY, []) == []
    assert provider.requests == []


def test_texts_that_are_no_unicode_are_sent_as_far_as_they_are(provider, reranker):
    assert len(reranker.rerank("wifi \udc80", ["a \ud800 b", "中文 wifi"])) == 2
    assert provider.requests[0]["documents"] == ["a ? b", "中文 wifi"]


def test_several_threads_at_once(provider, reranker):
    found = {}

    def ask(number):
        found[number] = reranker.rerank(QUERY, TEXTS[: number % 3 + 1])

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [len(found[number]) for number in range(6)] == [1, 2, 3, 1, 2, 3]


# --- what a retry may fix -----------------------------------------------------------------


@pytest.mark.parametrize("status", [429, 500, 502, 503])
def test_a_passing_fault_is_tried_again(provider, reranker, waits, status):
    provider.planned = [Reply(status), Reply(status)]
    assert reranker.rerank(QUERY, TEXTS) == pytest.approx([0, 1, 1 / 3])
    assert len(provider.requests) == 3
    assert waits == [True, True]


@pytest.mark.parametrize("status", [429, 500])
def test_three_tries_and_no_more(provider, reranker, status):
    provider.planned = [Reply(status, b"quota of " + KEY.encode())] * 5
    failing(reranker, str(status))
    assert len(provider.requests) == 3


def test_retry_after_in_seconds_is_obeyed(provider, reranker, waits):
    provider.planned = [Reply(429, headers={"Retry-After": "3"})]
    reranker.rerank(QUERY, TEXTS)
    assert waits == [3]


def test_retry_after_as_a_date_is_obeyed(provider, reranker, waits):
    when = datetime.now(UTC) + timedelta(seconds=5)
    provider.planned = [Reply(503, headers={"Retry-After": format_datetime(when, usegmt=True)})]
    reranker.rerank(QUERY, TEXTS)
    assert 0 <= waits[0] <= 5


def test_retry_after_that_has_passed_is_now(provider, reranker, waits):
    provider.planned = [Reply(503, headers={"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"})]
    reranker.rerank(QUERY, TEXTS)
    assert waits == [0]


@pytest.mark.parametrize("header", ["", "soon", "-1", "1.5"])
def test_retry_after_that_says_nothing_leaves_our_own_wait(provider, reranker, waits, header):
    provider.planned = [Reply(429, headers={"Retry-After": header})]
    reranker.rerank(QUERY, TEXTS)
    assert waits == [True]


@pytest.mark.parametrize("seconds", ["60", "9" * 400], ids=["a minute", "for ever"])
def test_a_search_does_not_wait_for_long(provider, reranker, waits, seconds):
    provider.planned = [Reply(429, headers={"Retry-After": seconds})]
    error = failing(reranker, "too many requests")
    assert error.hint.startswith("try again in ")
    assert (len(provider.requests), waits) == (1, [])


def test_an_answer_that_breaks_off_is_tried_again(provider, reranker):
    provider.planned = [Reply(body=b'{"results": [', cut_short=True)]
    assert len(reranker.rerank(QUERY, TEXTS)) == 3
    assert len(provider.requests) == 2


# --- what another try would not ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (401, "refused the API key"),
        (403, "refused the API key"),
        (400, "refused the request"),
        (404, "no such endpoint or model"),
        (302, "refused the request"),
    ],
)
def test_a_refusal_is_one_call(provider, reranker, waits, status, message):
    body = b'{"message": "bad key ' + KEY.encode() + b'"}'
    provider.planned = [Reply(status, body, {"Location": "http://127.0.0.1:1/"})]
    failing(reranker, message)
    assert (len(provider.requests), waits) == (1, [])


def test_a_provider_that_hangs_costs_the_timeout_once(provider):
    provider.held = threading.Event()
    failing(HttpReranker(provider.name, base_url=provider.url, key=KEY, timeout_s=0.1), "did not respond within 0.1 s")
    assert len(provider.requests) <= 1


def test_nobody_there():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    failing(HttpReranker("cohere", base_url=f"http://127.0.0.1:{port}", key=KEY), "cannot be reached")


@pytest.mark.parametrize("address", ["http://[nonsense", "http:///", "http://a\x01b"])
def test_an_address_that_is_none(address):
    failing(HttpReranker("jina", base_url=address, key=KEY), "cannot be reached")


@pytest.mark.parametrize(
    ("body", "message"),
    [
        pytest.param(b"<html>gateway</html>", "not JSON", id="a page"),
        pytest.param(b'{"results": [{"index": 0', "not JSON", id="truncated"),
        pytest.param(b"\xff\xfe{}", "not JSON", id="not UTF-8"),
        pytest.param(b"[" * 100_000, "not JSON", id="nested without end"),
        pytest.param(b"[]", "no list in", id="a list"),
        pytest.param(b"{}", "no list in", id="empty"),
        pytest.param(b'{"results": [1, 2, 3], "data": [1, 2, 3]}', "no list in", id="numbers alone"),
    ],
)
def test_an_answer_that_cannot_be_read(provider, reranker, body, message):
    provider.planned = [Reply(body=body)]
    failing(reranker, rf"invalid response from \w+: {message}")
    assert len(provider.requests) == 1


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        pytest.param([(0, 0.5), (1, 0.5)], "2 scores for 3 texts", id="too few"),
        pytest.param([(0, 0.5), (1, 0.5), (2, 0.5), (0, 0.5)], "4 scores for 3 texts", id="too many"),
        pytest.param([(0, 0.5), (1, 0.5), (1, 0.5)], "an index is out of range or repeated", id="one twice"),
        pytest.param([(0, 0.5), (1, 0.5), (3, 0.5)], "an index is out of range or repeated", id="beyond the last"),
        pytest.param([(0, 0.5), (1, 0.5), (-1, 0.5)], "an index is out of range or repeated", id="negative"),
        pytest.param([(0, 0.5), (True, 0.5), (2, 0.5)], "an index is out of range or repeated", id="true for an index"),
        pytest.param([(0, 0.5), ("1", 0.5), (2, 0.5)], "an index is out of range or repeated", id="text for an index"),
        pytest.param([(0, 0.5), (1, float("nan")), (2, 0.5)], "a score is not a number", id="NaN"),
        pytest.param([(0, 0.5), (1, float("inf")), (2, 0.5)], "a score is not a number", id="infinity"),
        pytest.param([(0, 0.5), (1, 10**400), (2, 0.5)], "a score is not a number", id="larger than any float"),
        pytest.param([(0, 0.5), (1, None), (2, 0.5)], "a score is not a number", id="null"),
        pytest.param([(0, 0.5), (1, "0.5"), (2, 0.5)], "a score is not a number", id="text for a score"),
        pytest.param([(0, 0.5), (1, True), (2, 0.5)], "a score is not a number", id="true for a score"),
    ],
)
def test_scores_are_checked(provider, reranker, pairs, message):
    provider.planned = [results(provider, *pairs)]
    failing(reranker, rf"invalid response from \w+: .*{message}")


def test_whole_numbers_are_scores_too(provider, reranker):
    provider.planned = [results(provider, (2, 1), (0, 0), (1, -3))]
    assert reranker.rerank(QUERY, TEXTS) == [0, -3, 1]
