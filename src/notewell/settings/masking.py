"""Settings and single values as they may be shown: secrets become `***`."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from notewell.settings.model import OPTIONS, Settings, flatten
from notewell.settings.option import Option, as_plain

MASK = "***"
_LONGEST_SHOWN = 80  # characters; an error message is one or two lines
# The patterns are compiled when first used: a search that goes well shows no value.
_TELLING_NAME = r"(?i)auth|cookie|credential|key|pass|secret|session|signature|token"
# Keys pasted under the wrong name: OpenAI's, Voyage's, GitHub's, Slack's and Google's by how they start, bearer values,
# and long runs of letters and digits, which is all that other keys have in common.
_LIKE_A_KEY = (
    r"(?i:\bbearer\s+[^\s\"]+)"
    r"|\b(?:sk|pk|pa|gh[pousr]|xox[a-z])[-_][\w-]{8,}"
    r"|\bAIza[\w-]{8,}"
    r"|\b(?=[A-Za-z]*\d)[A-Za-z0-9]{24,}\b"
)
_URL_LOGIN = r"(?<=://)[^/@\s]+(?=@)"
_URL_PARAMETER = r"([?&][^=&\s]*=)[^&\s\"]+"


def masked_text(text: str) -> str:
    """Return the text without anything in it that looks like a key, a login or a parameter of an address."""
    without_keys = re.sub(_LIKE_A_KEY, MASK, text)
    if "://" not in without_keys:
        return without_keys
    return re.sub(_URL_PARAMETER, rf"\1{MASK}", re.sub(_URL_LOGIN, MASK, without_keys))


def shown(value: object, option: Option | None = None) -> str:
    """Return the value for a message: as one would write it in a file, shortened, secrets masked."""
    if option is not None and option.secret:
        return MASK
    if isinstance(value, int) and value.bit_length() > 63:  # Python refuses to print the longest ones
        return "a number with too many digits"
    text = json.dumps(as_plain(value), ensure_ascii=False, default=str, skipkeys=True)
    text = masked_text(text.encode("utf-8", "backslashreplace").decode())
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}..."


def public_value(key: str, value: object) -> object:
    """Return one setting's value as plain data; keys and secret-looking headers are masked."""
    if isinstance(value, Mapping):
        return {name: MASK if re.search(_TELLING_NAME, name) else masked_text(text) for name, text in value.items()}
    if OPTIONS[key].secret and value:
        return MASK
    plain = as_plain(value)
    return masked_text(plain) if isinstance(plain, str) and OPTIONS[key].kind == "text" else plain


def is_secret_header(name: str, value: str) -> bool:
    """Say whether a header holds something that must be kept out of messages, files and names."""
    return bool(re.search(_TELLING_NAME, name)) or masked_text(value) != value


def to_public_dict(settings: Settings) -> dict[str, Any]:
    """Return all settings as nested plain data that is safe to print, log or send: JSON can hold it as it is."""
    public: dict[str, Any] = {}
    for key, value in flatten(settings).items():
        *groups, name = key.split(".")
        table = public
        for group in groups:
            table = table.setdefault(group, {})
        table[name] = public_value(key, value)
    return public
