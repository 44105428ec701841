"""What a status, a header and a body mean, and what of them may be shown."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from notewell.embedding.http_calls import (
    INTERACTIVE,
    RemoteFailure,
    Reply,
    RetryPolicy,
    retry_after_s,
    without_secrets,
)
from notewell.text import valid_unicode

KEY = "sk-proj-0451deadbeef0451deadbeef"


def failure(status: int, body: object = None, secrets=(), **headers: str) -> RemoteFailure | None:
    return Reply(status, headers, b"" if body is None else json.dumps(body).encode()).failure("Acme", secrets)


@pytest.mark.parametrize("status", [200, 201, 204])
def test_a_good_status_is_no_failure(status):
    assert failure(status) is None


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (302, "refused"),
        (400, "refused"),
        (401, "key"),
        (402, "quota"),
        (403, "key"),
        (404, "missing"),
        (413, "refused"),
        (422, "refused"),
        (429, "rate_limited"),
        (500, "server"),
        (503, "server"),
        (529, "server"),
    ],
)
def test_what_a_status_means(status, kind):
    found = failure(status)
    assert (found.kind, found.status) == (kind, status)
    assert f"({status})" in found.message


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        pytest.param({"error": {"code": "insufficient_quota"}}, "quota", id="OpenAI, nothing left"),
        pytest.param({"error": {"code": "rate_limit_exceeded"}}, "rate_limited", id="OpenAI, too fast"),
        pytest.param({"error": {"message": "Quota exceeded", "d": "RequestsPerDay"}}, "quota", id="Gemini, the day"),
        pytest.param(
            {"error": {"message": "Quota exceeded", "d": "RequestsPerMinute"}}, "rate_limited", id="Gemini, the minute"
        ),
        pytest.param({"detail": "no credits left"}, "quota", id="Voyage"),
    ],
)
def test_a_used_up_quota_is_not_a_rate(body, kind):
    assert failure(429, body).kind == kind


def test_gemini_s_400_for_a_wrong_key():
    assert failure(400, {"error": {"details": [{"reason": "API_KEY_INVALID"}]}}).kind == "key"


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("3", 3),
        (" 12 ", 12),
        ("0", 0),
        ("9" * 400, 999_999_999),
        ("Wed, 21 Oct 2015 07:28:00 GMT", 0),
        ("", None),
        ("soon", None),
        ("-1", None),
        ("1.5", None),
    ],
)
def test_retry_after(header, seconds):
    assert retry_after_s(header) == seconds


def test_retry_after_as_a_date_to_come():
    when = datetime.now(UTC) + timedelta(hours=1)
    assert 3500 < retry_after_s(format_datetime(when, usegmt=True)) <= 3600


def test_the_wait_that_gemini_asks_for_in_the_body():
    assert failure(429, {"error": {"details": [{"retryDelay": "34.5s"}]}}).retry_after_s == 34.5


def test_the_header_counts_before_the_body():
    assert failure(429, {"error": {"details": [{"retryDelay": "34s"}]}}, **{"retry-after": "2"}).retry_after_s == 2


@pytest.mark.parametrize(
    ("error", "by_default", "interactive"),
    [
        pytest.param(RemoteFailure("rate_limited", "m"), True, True, id="too fast"),
        pytest.param(RemoteFailure("rate_limited", "m", retry_after_s=3.0), 3.0, 3.0, id="asked to wait"),
        pytest.param(RemoteFailure("rate_limited", "m", retry_after_s=0.0), 0.0, 0.0, id="asked to come at once"),
        pytest.param(
            RemoteFailure("rate_limited", "m", retry_after_s=30.0), 30.0, False, id="asked to wait for half a minute"
        ),
        pytest.param(RemoteFailure("rate_limited", "m", retry_after_s=600.0), False, False, id="asked to wait long"),
        pytest.param(RemoteFailure("server", "m"), True, True, id="it failed"),
        pytest.param(RemoteFailure("connection_lost", "m"), True, True, id="the connection was lost"),
        pytest.param(RemoteFailure("timeout", "m"), True, False, id="it was silent"),
        pytest.param(RemoteFailure("invalid_response", "m"), True, False, id="invalid response"),
        pytest.param(RemoteFailure("key", "m"), False, False, id="wrong key"),
        pytest.param(RemoteFailure("quota", "m"), False, False, id="nothing left"),
        pytest.param(RemoteFailure("refused", "m"), False, False, id="refused"),
        pytest.param(RemoteFailure("unreachable", "m"), False, False, id="nobody there"),
        pytest.param(KeyboardInterrupt(), False, False, id="not a failure of the call"),
    ],
)
def test_when_a_call_is_retried(error, by_default, interactive):
    for policy, decision in ((RetryPolicy(), by_default), (INTERACTIVE, interactive)):
        found = policy.decide(error)
        assert (found, type(found)) == (decision, type(decision))


def test_the_waits_of_openclaw():
    policy = RetryPolicy()
    assert (policy.attempts, policy.first_wait_s, policy.max_wait_s) == (3, 0.5, 8.0)


@pytest.mark.parametrize(
    "told",
    [
        f"Incorrect API key provided: {KEY}.",
        "Incorrect API key provided: sk-proj-0451************beef.",
        f"Bearer {KEY} is not known",
        "key AIzaSyD0451 is not valid",
    ],
)
def test_no_key_is_shown_in_whatever_form_it_comes_back(told):
    shown = without_secrets(told, {KEY})
    assert "0451" not in shown
    assert "beef" not in shown


def test_what_a_provider_says_is_one_short_line():
    shown = without_secrets("a\nb\x00c " + "x y " * 200, ())
    assert "\n" not in shown
    assert "\x00" not in shown
    assert len(shown) <= 203


@pytest.mark.parametrize(
    "body",
    [
        {"error": {"message": "told so"}},
        {"error": "told so"},
        {"message": "told so"},
        {"detail": "told so"},
        {"detail": [{"msg": "told so"}]},
    ],
)
def test_the_sentence_in_an_error_body(body):
    assert failure(400, body).detail == "told so"


@pytest.mark.parametrize("content", [b"<html>", b"", b"[1, 2]", b'{"error": {"a": 1}}', b"\xff", b"[" * 100_000])
def test_a_body_without_a_sentence(content):
    assert Reply(400, {}, content).failure("Acme", ()).detail == ""


@pytest.mark.parametrize("content", [b"<html>", b'{"a": ', b"\xff\xfe", b"[" * 100_000])
def test_what_is_no_json(content):
    with pytest.raises(RemoteFailure, match="invalid response from Acme: not JSON") as raised:
        Reply(200, {}, content).json("Acme")
    assert raised.value.kind == "invalid_response"


def test_lone_surrogates_are_replaced():
    assert valid_unicode("a \ud800 b 中") == "a ? b 中"
