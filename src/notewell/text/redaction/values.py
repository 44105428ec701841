"""Says what values look like: random as keys are, chosen as passwords are, or standing for one only."""

from __future__ import annotations

import math
import re
from collections import Counter
from itertools import pairwise

Span = tuple[int, int, str]  # first character, the one after the last, kind

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
    r" | 1password(?:'s)?"
    r" | (?:pass(?:word|wd|phrase)?|secret|token|key|pwd|user(?:name)?|admin|root|guest|postgres|mysql|redis)\d{0,3}"
    r")$"
)
_LONGEST_WORD = 24  # letters or digits in a row in a name of a program
_LOOKED_AT = 120  # characters of a value; randomness shows within a few dozen
_LONGEST_PLACEHOLDER = 120  # characters
_NAME_CHAIN = re.compile(r"[A-Za-z_][A-Za-z_]*(?:[._/:-][A-Za-z_][A-Za-z_]*)*[.,:;!?]*")  # words, no digit anywhere
_PATH = re.compile(r"(?:\.{0,2}/|~/|[A-Za-z]:\\|[a-z]+://)")
_WORD_ENDS = re.compile(r"[_\-./:]+")
_HUMPS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_VOWEL = re.compile(r"[aeiouyAEIOUY]")
_NUMBERS = re.compile(r"[\d.,:/_+\- ]+[a-zA-Z%]{0,3}")  # amounts, dates, versions, addresses
_UUID = re.compile(r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}")
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
            if len(hump) > _LONGEST_WORD:
                return False
            if hump.isalpha():
                letters, pieces = letters + len(hump), pieces + 1
                if len(hump) > 3 and not _VOWEL.search(hump):
                    return False
    return pieces > 0 and letters >= 3.5 * pieces


def looks_random(value: str) -> bool:
    """Say whether a long value is random, as keys are, and no word, name, path, number or date."""
    value = value[:_LOOKED_AT]
    if _UUID.fullmatch(value):
        return True
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
    if _switches_case(value, shortest=8, least=0.25) and not _is_identifier(value):
        return True
    if _NUMBERS.fullmatch(value) or _PATH.match(value) or _NAME_CHAIN.fullmatch(value):
        return False
    letters = sum(map(str.isalpha, value))
    others = sum(char.isdigit() or char in _SYMBOLS for char in value)
    return letters >= 2 and others >= 1 and _bits_per_character(value) >= 2.0


def _switches_case(value: str, *, shortest: int = 12, least: float = 1 / 3) -> bool:
    """Say whether case changes as often as in random text, which is more often than in camelCase and Headline-Case.

    In random text it does between half of the letters; of 12, in one in 50 between fewer than a quarter.
    """
    letters = [char for char in value if char.isalpha()]
    changes = sum(one.isupper() != other.isupper() for one, other in pairwise(letters))
    return len(letters) >= shortest and changes >= len(letters) * least


def looks_chosen(value: str) -> bool:
    """Say whether a word of a sentence is a password: `hunter2`, `Zx9-blue`, but not `SHA-256` or `12-character`."""
    if not looks_like_password(value) or not value.isascii():
        return False
    kinds = ["a" if char.isalpha() else "0" if char.isdigit() else "!" for char in value if char not in "-_./:'"]
    changes = sum(one != other for one, other in pairwise(kinds))
    return changes >= 2 or (changes == 1 and value[0].islower() and value.isalnum() and len(value) <= 20)
