"""What a provider answered: status, headers and body come in; JSON, or the failure they stand for, goes out."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from notewell.embedding.http.failures import FailureKind, RemoteFailure

MASK = "***"
_LONGEST_DETAIL = 200  # characters: what a provider says fits into two lines of a terminal
_SHORTEST_SECRET = 4  # shorter values are words that a message may hold by chance
# Providers quote a refused key with its middle left out, so what is left looks like a key but is not the one sent.
_LIKE_A_KEY = re.compile(
    r"(?i:\bbearer\s+\S+)|\b(?:sk|pk|pa|gsk|key)[-_][\w*.-]{6,}|\bAIza[\w*.-]{4,}|\b(?=\w*\d)[A-Za-z0-9_-]{24,}\b"
    r"|[\w-]*\*{3,}[\w-]*"
)
# What the providers call an account that has nothing left, as opposed to one that asks too fast. Gemini says that a
# quota is exceeded in both cases, and in its details whether it is that of the minute or of the day.
_USED_UP = re.compile(r"(?i)insufficient_quota|PerDay|quota exceeded|no credits|usage limit|billing_hard_limit")
_TOO_FAST = "PerMinute"
_NOT_THE_KEY = "API_KEY_INVALID"  # Gemini's 400 for a wrong key
_KINDS: Mapping[int, FailureKind] = {
    401: "key",
    402: "quota",
    403: "key",
    404: "missing",
    408: "server",
    409: "server",
    429: "rate_limited",
}


@dataclass(frozen=True, slots=True)
class Reply:
    """One complete answer with a good status."""

    status: int
    headers: Mapping[str, str]  # names in lower case
    content: bytes

    def json(self, title: str) -> Any:
        """Return the body as JSON; raise RemoteFailure when it is none."""
        try:
            return json.loads(self.content)
        except (ValueError, RecursionError):  # not JSON, not UTF-8, or nested without end
            raise RemoteFailure("nonsense", f"{title} answered nonsense: no JSON", status=self.status) from None


def failure_of(title: str, reply: Reply, secrets: Collection[str]) -> RemoteFailure | None:
    """Return what is wrong according to the status; None for a good one."""
    status = reply.status
    if 200 <= status < 300:
        return None
    told = _told(reply.content)
    kind: FailureKind = _KINDS.get(status, "server" if status >= 500 else "refused")
    if kind == "rate_limited" and _USED_UP.search(told) and (_TOO_FAST not in told or "PerDay" in told):
        kind = "quota"
    if kind == "refused" and _NOT_THE_KEY in told:
        kind = "key"
    what = {
        "key": "refused the API key",
        "quota": "says that the quota of this account is used up",
        "missing": "has nothing at that address, or no such model",
        "rate_limited": "has had too many requests",
        "server": "failed",
    }.get(kind, "refused the request")
    return RemoteFailure(
        kind,
        f"{title} {what} ({status})",
        status=status,
        wait_s=_asked_wait_s(reply.headers.get("retry-after", ""), told)
        if kind in {"rate_limited", "server"}
        else None,
        detail=without_secrets(_message_in(reply.content), secrets),
    )


def without_secrets(text: str, secrets: Collection[str]) -> str:
    """Return the text on one line, shortened, with neither the secrets given nor anything that looks like a key."""
    for secret in secrets:
        if len(secret) >= _SHORTEST_SECRET:
            text = text.replace(secret, MASK)
    text = " ".join(_LIKE_A_KEY.sub(MASK, text).split())
    text = "".join(character for character in text if character.isprintable())
    return text if len(text) <= _LONGEST_DETAIL else f"{text[:_LONGEST_DETAIL]}..."


def sendable(text: str) -> str:
    """Return `text` with lone surrogates replaced: they are no text to anybody else."""
    return text.encode("utf-8", "replace").decode("utf-8")


def retry_after_s(header: str) -> float | None:
    """Return the seconds that the header asks for, which writes them as a number or as a date."""
    if header.strip().isdecimal():
        return float(header.strip()[:9])  # no more than 30 years
    try:
        when = parsedate_to_datetime(header)
    except ValueError:
        return None
    now = datetime.now(UTC)
    return max(0.0, (when.replace(tzinfo=when.tzinfo or UTC) - now).total_seconds())


def _asked_wait_s(header: str, told: str) -> float | None:
    asked = retry_after_s(header)
    if asked is None and (found := re.search(r'"retryDelay":\s*"(\d{1,9}(?:\.\d+)?)s"', told)):  # Gemini's way
        asked = float(found[1])
    return asked


def _told(content: bytes) -> str:
    return content[:20_000].decode("utf-8", "replace")


def _message_in(content: bytes) -> str:
    """Return the sentence in an error body; the providers keep it under one of a few names."""
    try:
        body = json.loads(content)
    except (ValueError, RecursionError):
        return ""
    for _ in range(3):
        if isinstance(body, list) and body:
            body = body[0]
        elif isinstance(body, dict):
            body = next((body[name] for name in ("error", "message", "detail", "msg") if name in body), "")
    return body if isinstance(body, str) else ""
