"""Text in, the places of values that are given to a name such as `password`, `api_key` or `Authorization` out."""

from __future__ import annotations

import re
from collections.abc import Iterator

from notewell.text.redaction.guessing import is_placeholder, looks_like_password, looks_random

Span = tuple[int, int, str]  # first character, the one after the last, kind

KEYWORDS = ("pass", "pwd", "secret", "token", "key", "credential", "bearer", "authorization")
SHORTEST_PASSWORD = 6
SHORTEST_KEY = 16  # below it a value given to `token` or `key` is a count, a name or a word
LONGEST = 2048

_KEY_OF = (  # what makes a secret of a key
    "(?:api|access|auth|secret|private|signing|encryption|account|service|master|shared|client|app|admin|license"
    "|session|webhook|deploy|storage|subscription|consumer)[ _-]?"
)
_NAME = (  # the end of a name in code, settings, headers or prose
    r"(?P<password>passw(?:or)?d?s?|pwd|passphrase|pass_?code)"
    rf"|(?P<key>secrets?|tokens?|credentials?|{_KEY_OF}key)"
)
# Up to the value: the rest of the name, quotes and emphasis around it, and = : := => or a word of prose.
_BETWEEN = (
    r"(?P<rest>[\w-]{0,24})(?P<closing>\\{0,3}[\"'`]|\]|\*{1,2})?"
    r"(?:[ \t]*(?P<sign>:=|=>|==?|:|->)[ \t]*\*{0,2}[ \t]*|[ \t]+(?P<verb>is|was|to)[ \t]*:?[ \t]+|(?P<blank>[ \t]+))"
    r"(?P<type>(?:str|string|bytes)(?:[ \t]*\|[ \t]*None)?[ \t]*=[ \t]*)?"
)
_VALUE = r"(?P<opening>\\{0,3}[\"'`]{1,3}|<)?(?P<value>[^\s\"'`<>,;|(){}\[\]\\]{6,2048})(?P<after>[(\[{])?"
_ASSIGNMENT = re.compile(f"(?:{_NAME}){_BETWEEN}{_VALUE}", re.IGNORECASE | re.ASCII)
_NAME_START = re.compile(f"{_KEY_OF}$", re.IGNORECASE)
_LONGEST_START = 14  # "subscription" and a separator, before `key`
_NEXT_PARAMETER = re.compile(r"&[\w.-]+=")
_BEARER = re.compile(r"bearer[ \t]+(?P<value>[A-Za-z0-9._~+/=-]{16,2048})", re.IGNORECASE | re.ASCII)
_BASIC = re.compile(
    r"authorization\\?[\"']?[ \t]*[:=][ \t]*\\?[\"']?[ \t]*(?P<scheme>basic|token|apikey|key|digest)[ \t]+"
    r"(?P<value>[A-Za-z0-9._~+/=-]{8,2048})",
    re.IGNORECASE | re.ASCII,
)


def assigned_secrets(text: str) -> Iterator[Span]:
    """Yield where values of telling names stand, if they look like secrets."""
    lowered = text.lower()
    if len(lowered) != len(text):  # a few capitals, such as İ, have no small letter of one character
        lowered = "".join(char.lower() if char.isascii() else char for char in text)
    for keyword in KEYWORDS:
        at = lowered.find(keyword)
        while at >= 0:
            yield from _at_keyword(text, keyword, at)
            at = lowered.find(keyword, at + len(keyword))


def _at_keyword(text: str, keyword: str, at: int) -> Iterator[Span]:
    if keyword == "bearer":
        found = _BEARER.match(text, at)
        if found and looks_random(_value(found)) and not is_placeholder(_value(found)):
            yield _span(found, "bearer-token")
    elif keyword == "authorization":
        found = _BASIC.match(text, at)
        if found and not is_placeholder(found["value"]):
            yield _span(found, "authorization")
    else:
        found = _ASSIGNMENT.match(text, _name_start(text, keyword, at))
        if found and _is_secret(text, found):
            yield _span(found, "password" if found["password"] else "assigned-secret")


def _name_start(text: str, keyword: str, at: int) -> int:
    """Return where the telling part of a name begins: `key` alone says nothing, `api_key` does."""
    if keyword != "key":
        return at
    before = _NAME_START.search(text, max(0, at - _LONGEST_START), at)
    return before.start() if before else at


def _is_secret(text: str, found: re.Match[str]) -> bool:
    value = _value(found)
    if found["after"] or is_placeholder(value) or not _is_said(text, found):
        return False
    if found["password"] and len(value) < SHORTEST_KEY:
        return len(value) >= (SHORTEST_PASSWORD if found["sign"] or found["opening"] else 8) and looks_like_password(
            value
        )
    if found["password"]:
        return looks_random(value) or looks_like_password(value)
    return len(value) >= SHORTEST_KEY and looks_random(value)


def _is_said(text: str, found: re.Match[str]) -> bool:
    """Say whether name and value belong together: after a mere blank only in `--token value` and `PASSWORD 'value'`."""
    if found["sign"]:
        return True
    if found["verb"]:
        return found["verb"].lower() != "to" or bool(found["opening"])
    start = found.start()
    word = text.rfind("-", max(0, start - 24), start)
    is_flag = word > 0 and text[word - 1] == "-" and " " not in text[word:start]
    return is_flag or (bool(found["opening"]) and found["opening"] != "<" and not found["rest"])


def _value(found: re.Match[str]) -> str:
    """Return the value without the punctuation of its sentence and the parameters that follow it in an address."""
    return _NEXT_PARAMETER.split(found["value"], maxsplit=1)[0].rstrip(".,:!?*")


def _span(found: re.Match[str], kind: str) -> Span:
    start = found.start("value")
    return start, start + len(_value(found)), kind
