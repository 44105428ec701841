"""Describes calls to a provider: the address, the meaning of a response, and when to retry.

The client is in `http_client`. This module is cheap to import, because choosing a provider needs it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any, Literal
from urllib.parse import SplitResult, unquote, urlsplit, urlunsplit

from notewell.settings.masking import MASK

PACKAGES = ("httpx", "stamina")
INSTALL_HINT = 'run `pip install "notewell[remote]"`'
LOOPBACK = ("localhost", "127.0.0.1", "::1")

FailureKind = Literal[
    "unreachable",  # nothing answers at that address
    "timeout",
    "connection_lost",  # the connection ended before the response did
    "rate_limited",
    "quota",  # the account has no quota left
    "key",  # the API key was refused
    "refused",  # the request itself was refused
    "missing",  # no such address or model
    "server",  # the provider failed
    "invalid_response",  # not what was asked for
    "wrong_dimensions",  # a valid response, but vectors of another length than expected
]

_MAX_DETAIL = 200  # characters: two lines of a terminal
_MIN_SECRET = 4  # characters; shorter values occur in messages by chance
# Providers quote a refused key without its middle: it looks like a key but is not the one we sent.
_LIKE_A_KEY = re.compile(
    r"(?i:\bbearer\s+\S+)|\b(?:sk|pk|pa|gsk|key)[-_][\w*.-]{6,}|\bAIza[\w*.-]{4,}|\b(?=\w*\d)[A-Za-z0-9_-]{24,}\b"
    r"|(?<![\w-])[\w-]*+\*{3,}[\w-]*|\*{3,}[\w-]*"
)
# How providers report a used-up quota, as opposed to a rate limit. Gemini says "quota exceeded" for both; its details
# name the quota of the minute or of the day.
_QUOTA_USED_UP = re.compile(r"(?i)insufficient_quota|PerDay|quota exceeded|no credits|usage limit|billing_hard_limit")
_GEMINI_BAD_KEY = "API_KEY_INVALID"  # in a response with status 400
_RETRY_DELAY = re.compile(r'"retryDelay":\s*"(\d{1,9}(?:\.\d+)?)s"')  # Gemini's Retry-After, in the body
_KINDS: Mapping[int, FailureKind] = {
    401: "key",
    402: "quota",
    403: "key",
    404: "missing",
    408: "server",
    409: "server",
    429: "rate_limited",
}
_MESSAGES: Mapping[FailureKind, str] = {
    "key": "refused the API key",
    "quota": "reports that the quota of this account is used up",
    "missing": "has no such endpoint or model",
    "rate_limited": "received too many requests",
    "server": "failed",
    "refused": "refused the request",
}


def missing_packages() -> list[str]:
    """Return which packages of the extra `remote` are not installed, without importing them."""
    return [name for name in PACKAGES if find_spec(name) is None]


@dataclass(frozen=True, slots=True)
class Service:
    """A provider at one address; a login in the address becomes a header."""

    title: str
    base_url: str = field(repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def address(self) -> str:
        """The base URL without login, parameters and trailing slash: safe to show, and part of an identity."""
        parts = self._parts
        if parts is None:
            return self.base_url.rpartition("@")[2].rstrip("/")
        host = parts.netloc.rpartition("@")[2].lower()
        return urlunsplit((parts.scheme.lower(), host, parts.path.rstrip("/"), "", ""))

    @property
    def is_loopback(self) -> bool:
        """Whether the service runs on this machine."""
        return self._parts is not None and self._parts.hostname in LOOPBACK

    @property
    def all_headers(self) -> dict[str, str]:
        """The headers of every request; a given Authorization header wins over the login."""
        given = {name: value for name, value in self.headers.items() if value}
        if not self._login or any(name.lower() == "authorization" for name in given):
            return given
        import base64

        return {"Authorization": f"Basic {base64.b64encode(self._login.encode()).decode()}", **given}

    @property
    def secrets(self) -> frozenset[str]:
        """Every value that must not be shown: headers, the login, and the words in them."""
        values = {*self.headers.values(), self._login}
        words = {word for value in values for word in value.replace(":", " ").split()}
        return frozenset({*values, *words} - {"", "Bearer"})

    @property
    def _login(self) -> str:
        return unquote(self._parts.netloc.rpartition("@")[0]) if self._parts else ""

    @property
    def _parts(self) -> SplitResult | None:
        try:
            return urlsplit(self.base_url)
        except ValueError:
            return None


class RemoteFailure(Exception):  # noqa: N818 - never shown as it is: callers turn it into an error of their own
    """A failed call; `detail` is the provider's message, without keys, and may quote the request."""

    def __init__(
        self,
        kind: FailureKind,
        message: str,
        *,
        status: int | None = None,
        retry_after_s: float | None = None,
        detail: str = "",
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.status = status
        self.retry_after_s = retry_after_s  # how long the provider asks us to wait
        self.detail = detail


def invalid_response(title: str, reason: str) -> RemoteFailure:
    """Return the failure for a response that is not what was asked for."""
    return RemoteFailure("invalid_response", f"invalid response from {title}: {reason}")


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often to retry, and how long to wait; the defaults are those of OpenClaw's embedding calls."""

    attempts: int = 3
    first_wait_s: float = 0.5  # doubles with every attempt
    max_wait_s: float = 8.0
    jitter_s: float = 0.5  # keeps agents that failed together from retrying together
    max_retry_after_s: float = 60.0  # rate limits are per minute; do not retry if the wait is longer
    retry_on: frozenset[FailureKind] = frozenset(
        {"timeout", "connection_lost", "rate_limited", "server", "invalid_response"}
    )

    def decide(self, error: BaseException) -> bool | float:
        """Return False for no retry, True for a retry after our own wait, or the seconds the provider asked for."""
        if not isinstance(error, RemoteFailure) or error.kind not in self.retry_on:
            return False
        if error.retry_after_s is None:
            return True
        return error.retry_after_s if error.retry_after_s <= self.max_retry_after_s else False


# While somebody waits: no retries after timeouts and invalid responses, and only short waits.
INTERACTIVE = RetryPolicy(max_retry_after_s=8.0, retry_on=frozenset({"connection_lost", "rate_limited", "server"}))


@dataclass(frozen=True, slots=True)
class Reply:
    """A complete HTTP response."""

    status: int
    headers: Mapping[str, str]  # names in lower case
    content: bytes

    def json(self, title: str) -> Any:
        """Return the body as JSON; raise RemoteFailure when it is not."""
        try:
            return json.loads(self.content)
        except (ValueError, RecursionError):  # not JSON, not UTF-8, or nested without end
            raise invalid_response(title, "not JSON") from None

    def failure(self, title: str, secrets: Collection[str]) -> RemoteFailure | None:
        """Return the failure for the status; None for success."""
        if 200 <= self.status < 300:
            return None
        text = self.content[:20_000].decode("utf-8", "replace")
        kind: FailureKind = _KINDS.get(self.status, "server" if self.status >= 500 else "refused")
        if kind == "rate_limited" and _QUOTA_USED_UP.search(text) and ("PerMinute" not in text or "PerDay" in text):
            kind = "quota"
        if kind == "refused" and _GEMINI_BAD_KEY in text:
            kind = "key"
        wait_s = None
        if kind in {"rate_limited", "server"}:
            wait_s = retry_after_s(self.headers.get("retry-after", ""))
            if wait_s is None and (found := _RETRY_DELAY.search(text)):
                wait_s = float(found[1])
        return RemoteFailure(
            kind,
            f"{title} {_MESSAGES[kind]} ({self.status})",
            status=self.status,
            retry_after_s=wait_s,
            detail=without_secrets(self._error_message(), secrets),
        )

    def _error_message(self) -> str:
        """Return the message in an error body, which has different names."""
        try:
            body = json.loads(self.content)
        except (ValueError, RecursionError):
            return ""
        for _ in range(3):
            if isinstance(body, list) and body:
                body = body[0]
            elif isinstance(body, dict):
                body = next((body[name] for name in ("error", "message", "detail", "msg") if name in body), "")
        return body if isinstance(body, str) else ""


def without_secrets(text: str, secrets: Collection[str]) -> str:
    """Return the text on one line, shortened, without secrets and anything that looks like a key."""
    for secret in secrets:
        if len(secret) >= _MIN_SECRET:
            text = text.replace(secret, MASK)
    text = " ".join(_LIKE_A_KEY.sub(MASK, text).split())
    text = "".join(character for character in text if character.isprintable())
    return text if len(text) <= _MAX_DETAIL else f"{text[:_MAX_DETAIL]}..."


def retry_after_s(header: str) -> float | None:
    """Return the seconds of a Retry-After header, which holds a number or a date."""
    if header.strip().isdecimal():
        return float(header.strip()[:9])  # no more than 30 years
    from datetime import UTC, datetime
    from email.utils import parsedate_to_datetime

    try:
        when = parsedate_to_datetime(header)
    except ValueError:
        return None
    return max(0.0, (when.replace(tzinfo=when.tzinfo or UTC) - datetime.now(UTC)).total_seconds())
