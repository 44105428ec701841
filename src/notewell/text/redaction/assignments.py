"""Finds values assigned to names such as `password`, `api_key` or `Authorization` that look like secrets."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise

Span = tuple[int, int, str]  # first character, the one after the last, kind

_KEYWORDS = ("pass", "pwd", "secret", "token", "key", "credential", "bearer", "authorization")
_SHORTEST_PASSWORD = 6
_SHORTEST_KEY = 16  # below it a value given to `token` or `key` is a count, a name or a word

_KEY_OF = (  # keys that are secrets
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
    """Yield where the secrets are that are assigned to a name."""
    lowered = text.lower()
    if len(lowered) != len(text):  # a few capitals, such as İ, have no small letter of one character
        lowered = "".join(char.lower() if char.isascii() else char for char in text)
    for keyword in _KEYWORDS:
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
    """Return where the name begins: `key` alone means nothing, `api_key` does."""
    if keyword != "key":
        return at
    before = _NAME_START.search(text, max(0, at - _LONGEST_START), at)
    return before.start() if before else at


def _is_secret(text: str, found: re.Match[str]) -> bool:
    value = _value(found)
    if found["after"] or is_placeholder(value) or not _is_said(text, found):
        return False
    if found["password"] and len(value) < _SHORTEST_KEY:
        return len(value) >= (_SHORTEST_PASSWORD if found["sign"] or found["opening"] else 8) and looks_like_password(
            value
        )
    if found["password"]:
        return looks_random(value) or looks_like_password(value)
    return len(value) >= _SHORTEST_KEY and looks_random(value)


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


# --- what values look like -----------------------------------------------------------------------

_PLACEHOLDER = re.compile(
    r"(?x) ^(?:"
    r" <.* | \[.* | \{.* | \$[{(].* | \$[A-Z_][A-Z0-9_]* | \$[a-z_]+ | %\(?[A-Za-z_]+\)?[%s]? | \#\{.* | &[a-z]+;.*"
    r" | \.{2,}.* | \*{2,}.* | [xX]{3,}[\W_]?.* | -+ | _+ | .*\$\{.* | .*\{\{.* | [A-Za-z_][\w.]*\(.* | .*::.* | .*->.*"
    r")$"
)
_PLACEHOLDER_WORDS = re.compile(
    r"(?ix) ^(?:"
    r" (?:your|my|some|the|an?|this|that|insert|enter|put|add|set|use|new|old|test|sample|demo|fake|dummy|mock)"
    r"    [-_ ][a-z_ -]*"
    r" | .*(?:example|placeholder|changeme|change[-_]me|redacted|not[-_]?set|goes[-_]?here|[-_]here$).*"
    r" | (?:process|os|sys|env|self|this|config|settings|cfg|secrets?|vars?|params?|args?|opts?|options|request|req"
    r"    |ctx|context|data|input|props|state|import|module|window|document|std)[.\[(].*"
    r" | (?:none|null|nil|true|false|undefined|empty|required|optional|string|bytes|number|boolean|integer|object"
    r"    |array)\b.*"
    r" | (?:pass(?:word|wd|phrase)?|secret|token|key|pwd|user(?:name)?|admin|root|guest|postgres|mysql|redis)\d{0,3}"
    r")$"
)
_LOOKED_AT = 120  # characters of a value; randomness shows within a few dozen
_LONGEST_PLACEHOLDER = 120  # characters
_NAME_CHAIN = re.compile(r"[A-Za-z_][A-Za-z_]*(?:[._/:-][A-Za-z_][A-Za-z_]*)*[.,:;!?]*")  # words, no digit anywhere
_PATH = re.compile(r"(?:\.{0,2}/|~/|[A-Za-z]:\\|[a-z]+://)")
_WORD_ENDS = re.compile(r"[_\-./:]+")
_HUMPS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_VOWEL = re.compile(r"[aeiouyAEIOUY]")
_NUMBERS = re.compile(r"[\d.,:/_+\- ]+[a-zA-Z%]{0,3}")  # amounts, dates, versions, addresses
_SYMBOLS = frozenset("!@#$%^&*?~+=|\\")


def _bits_per_character(text: str) -> float:
    """Return the Shannon entropy of the characters: 0 for one letter repeated, about 4 for 24 random ones."""
    length = len(text)
    return -sum(count / length * math.log2(count / length) for count in Counter(text).values())


def is_placeholder(value: str) -> bool:
    """Say whether a value only stands for a secret: `<token>`, `$TOKEN`, `your-key-here`, a call."""
    start = value[:_LONGEST_PLACEHOLDER]
    return _PLACEHOLDER.match(start) is not None or _PLACEHOLDER_WORDS.match(start) is not None


def _is_identifier(value: str) -> bool:
    """Say whether a value is a name from a program: words joined by capitals, _, - or dots, a number among them.

    Random words are short: 16 random letters and digits fall into ten of them.
    """
    if not value.isascii() or not value.replace("_", "").replace("-", "").replace(".", "").replace(":", "").isalnum():
        return False
    letters = pieces = 0
    for word in filter(None, _WORD_ENDS.split(value)):
        humps = _HUMPS.findall(word)
        if sum(hump.isdigit() for hump in humps) > 1:
            return False
        for hump in humps:
            if hump.isalpha():
                letters, pieces = letters + len(hump), pieces + 1
                if len(hump) > 3 and not _VOWEL.search(hump):
                    return False
    return pieces > 0 and letters >= 3.5 * pieces


def looks_random(value: str) -> bool:
    """Say whether a long value is random, as keys are, and no word, name, path, number or date."""
    value = value[:_LOOKED_AT]
    if _NUMBERS.fullmatch(value) or _PATH.match(value) or _is_identifier(value):
        return False
    has_digit = any(map(str.isdigit, value))
    if not has_digit and not _switches_case(value):
        return False
    # 16 random hex digits have 3.2 bits on average, and hardly ever below 2.5; repeated words and counters have less.
    return _bits_per_character(value) >= (2.5 if has_digit else 3.0)


def looks_like_password(value: str) -> bool:
    """Say whether a short value is a password somebody chose: letters with digits or symbols among them."""
    value = value[:_LOOKED_AT]
    if _switches_case(value, shortest=8) and not _is_identifier(value):
        return True
    if _NUMBERS.fullmatch(value) or _PATH.match(value) or _NAME_CHAIN.fullmatch(value):
        return False
    letters = sum(map(str.isalpha, value))
    others = sum(char.isdigit() or char in _SYMBOLS for char in value)
    return letters >= 2 and others >= 1 and _bits_per_character(value) >= 2.0


def _switches_case(value: str, *, shortest: int = 12) -> bool:
    """Say whether case changes as often as in random text, which is more often than in camelCase and Headline-Case."""
    letters = [char for char in value if char.isalpha()]
    changes = sum(one.isupper() != other.isupper() for one, other in pairwise(letters))
    return len(letters) >= shortest and changes * 3 >= len(letters)
