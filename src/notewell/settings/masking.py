"""Masks secrets in messages, logs and `notewell config show`."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path

MASK = "***"
_MAX_SHOWN = 80  # characters; an error message is one or two lines
# Compiled when first used: most runs show no values.
_TELLING_NAME = r"(?i)auth|cookie|credential|key|pass|secret|session|signature|token"
# Keys pasted under the wrong name: those of OpenAI, Voyage, GitHub, Slack and Google by their prefix, bearer values,
# and long runs of letters and digits.
_LIKE_A_KEY = (
    r"(?i:\bbearer\s+[^\s\"]+)"
    r"|\b(?:sk|pk|pa|gh[pousr]|xox[a-z])[-_][\w-]{8,}"
    r"|\bAIza[\w-]{8,}"
    r"|\b(?=[A-Za-z]*\d)[A-Za-z0-9]{24,}\b"
)
_URL_LOGIN = r"(?<=://)[^/@\s]+(?=@)"
_URL_PARAMETER = r"([?&][^=&\s]*=)[^&\s\"]+"


def masked_text(text: str) -> str:
    """Return the text with everything masked that looks like a key, a login or a URL parameter."""
    without_keys = re.sub(_LIKE_A_KEY, MASK, text)
    if "://" not in without_keys:
        return without_keys
    return re.sub(_URL_PARAMETER, rf"\1{MASK}", re.sub(_URL_LOGIN, MASK, without_keys))


def masked_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the headers with secret values masked."""
    return {name: MASK if re.search(_TELLING_NAME, name) else masked_text(text) for name, text in headers.items()}


def is_secret_header(name: str, value: str) -> bool:
    """Return whether a header must be kept out of messages, files and names."""
    return bool(re.search(_TELLING_NAME, name)) or masked_text(value) != value


def shown(value: object) -> str:
    """Return the value for a message: as in a file, shortened, with secrets masked."""
    if isinstance(value, int) and value.bit_length() > 63:  # Python refuses to print the longest ones
        return "a number with too many digits"
    text = json.dumps(as_plain(value), ensure_ascii=False, default=str, skipkeys=True)
    text = masked_text(text.encode("utf-8", "backslashreplace").decode())
    return text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}..."


def as_plain(value: object) -> object:
    """Return the value as plain data: lists for tuples, strings for paths."""
    if isinstance(value, tuple):
        return [as_plain(item) for item in value]
    if isinstance(value, Mapping):
        return dict(value)
    return str(value) if isinstance(value, Path) else value
