"""Makes examples of secrets from the public rules of gitleaks, Nosey Parker and Kingfisher; nothing of theirs is kept.

    git clone https://github.com/gitleaks/gitleaks
    git clone https://github.com/praetorian-inc/noseyparker
    git clone https://github.com/mongodb/kingfisher
    python -m evals.redaction --gitleaks gitleaks --noseyparker noseyparker --kingfisher kingfisher

Of gitleaks three sets: tokens made from each rule's pattern that a reader recognizes without a name (alone and in
prose), values of all other rules behind a telling name (in gitleaks' own sample forms), and the examples in the tests
of its rules. Our patterns were written with these rules at hand and corrected by what they missed, so the figures say
how much of gitleaks is covered, not how much of anything else. The examples of Nosey Parker were not looked at before
they were measured; do not correct patterns by them without finding another set to measure on. Of Kingfisher one half of
the services was looked at to find rules that hold for services nobody has heard of; the other half tells if they do.
"""

from __future__ import annotations

import random
import re
import re._constants as codes  # type: ignore[import-untyped]
import re._parser as parser  # type: ignore[import-untyped]
import string
import tomllib
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

NAMED = r"[\w.-]{0,50}?"  # how the rules begin that need the name of the service
# Rules without a secret of their own form: any 40 hex digits are also a commit, and these match commands and files,
# whose examples count in the third set.
NO_FORM = {
    "sourcegraph-access-token", "curl-auth-header", "curl-auth-user", "kubernetes-secret-yaml", "private-key",
    "freemius-secret-key", "nuget-config-password", "sidekiq-sensitive-url", "generic-api-key",
}  # fmt: skip
IDS = re.compile(r"-(?:client-id|access-id|user-api-id|pub-key|pub-api-key)$")  # rules for what is no secret
PROSE = (
    "@",
    "I pasted @ into the form yesterday, and it worked.",
    "The new one is @.",
    "- use `@` for the deploy",
    "user: my key is @ please keep it",
)
FORMS = (  # of gitleaks' GenerateSampleSecrets
    '{i}Token="@"', '{i}Token = "@"', "{i}Token=@", "{i}Token = @", '{\n    "{i}_token": "@"\n}',
    '{"config.ini": "{I}_TOKEN=@\\nBACKUP_ENABLED=true"}', "<{i}Token>\n    @\n</{i}Token>", "{i}_token: @",
    "{i}_token: '@'", '{i}_token: "@"', 'string {i}Token = "@";', 'var {i}Token string = "@"', '{i}Token := "@"',
    "{i}Token := `@`", 'String {i}Token = "@";', 'var {i}Token = "@"', '${i}Token .= "@"', "{i}Token = '@'",
    'System.setProperty("{I}_TOKEN", "@")', '  "{i}Token" => "@"', '{i}_TOKEN := "@"', '{i}_TOKEN ::= "@"',
    '{i}_TOKEN :::= "@"', '{i}_TOKEN ?= "@"', '{i}_api_token = "@"',
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Example:
    """A text with a secret of a rule."""

    rule: str
    secret: str
    text: str


def self_identifying(folder: Path, *, each: int = 20, seed: int = 1) -> Iterator[Example]:
    """Yield tokens that need no name, alone and in prose."""
    chance = random.Random(seed)
    for rule, form in _rules(folder):
        if rule in NO_FORM or NAMED in form:
            continue
        for _ in range(each):
            token = _made(chance, form)
            for context in PROSE:
                yield Example(rule, token, context.replace("@", token))


def named(folder: Path, *, each: int = 2, seed: int = 2) -> Iterator[Example]:
    """Yield values that need a name, behind one: `okta_token = "..."`."""
    chance = random.Random(seed)
    for rule, form in _rules(folder):
        if rule in NO_FORM or NAMED not in form or IDS.search(rule):
            continue
        service = rule.split("-")[0]
        for _ in range(each):
            value = _made(chance, form)
            for sample in FORMS:
                text = sample.replace("{i}", service).replace("{I}", service.upper()).replace("@", value)
                yield Example(rule, value, text)


def tested(folder: Path) -> Iterator[Example]:
    """Yield the examples in the tests of the rules, each with what its rule calls the secret."""
    patterns = {rule: re.compile(form) for rule, form in _rules(folder)}
    for path in sorted((folder / "cmd/generate/config/rules").glob("*.go")):
        for function in path.read_text(encoding="utf-8").split("\nfunc ")[1:]:
            rule = re.search(r'RuleID:\s*"([^"]+)"', function)
            listed = re.search(r"\btps\b\s*:?=(.*?)(?:\bfps\b\s*:?=|return utils\.Validate)", function, re.DOTALL)
            if rule is None or listed is None or rule[1] not in patterns or IDS.search(rule[1]):
                continue
            for text in _literals(listed[1]):
                found = patterns[rule[1]].search(text)
                if found:
                    secret = next((group for group in found.groups() if group), found.group())
                    if rule[1] == "curl-auth-user":  # the name before the colon is no secret
                        secret = secret.strip("\"'").rpartition(":")[2].strip("\"'{}") or secret.strip("\"':")
                    yield Example(rule[1], secret, text)


def unseen(folder: Path, *, one_group: bool = False) -> Iterator[Example]:
    """Yield the examples of Nosey Parker's rules for secrets.

    The longest group counts as the secret, which in a rule of several may be the user or the host; `one_group` leaves
    such rules out.
    """
    import yaml

    for path in sorted(folder.glob("**/rules/*.yml")):
        for rule in (yaml.safe_load(path.read_text(encoding="utf-8")) or {}).get("rules", ()):
            try:
                pattern = re.compile(rule["pattern"].strip(), re.VERBOSE | re.MULTILINE)
            except re.error:  # of Rust alone
                continue
            if "secret" not in rule.get("categories", ()) or (one_group and pattern.groups != 1):
                continue
            for text in rule.get("examples", ()):
                found = pattern.search(text)
                secret = max((group for group in found.groups() if group), key=len, default="") if found else ""
                if secret:
                    yield Example(rule["id"], secret, text)


def of_kingfisher(folder: Path, *, looked_at: bool) -> Iterator[Example]:
    """Yield the examples of Kingfisher's rules: of the half of the services that was looked at, or of the other one."""
    import yaml

    for path in sorted(folder.glob("**/data/rules/*.yml")):
        if (zlib.crc32(path.stem.lower().encode()) % 2 == 0) is not looked_at:
            continue
        for rule in (yaml.safe_load(path.read_text(encoding="utf-8")) or {}).get("rules", ()):
            form = re.sub(r"\(\?[xims]+\)", "", rule["pattern"].strip())
            try:
                pattern = re.compile(form, re.VERBOSE | re.MULTILINE | re.IGNORECASE)
            except re.error:  # of Rust alone
                continue
            for text in map(str, rule.get("examples") or ()):
                found = pattern.search(text)
                secret = (
                    max((group for group in found.groups() if group), key=len, default=found.group()) if found else ""
                )
                if len(secret) >= 12:
                    yield Example(rule["id"], secret, text)


def _literals(source: str) -> Iterator[str]:
    """Yield the string literals of a list in Go that stand alone, not inside of a call."""
    source = re.sub(r"(?m)^\s*//.*$", "", source)
    for found in re.finditer(r"(?ms)^\s*(?:\"[^\"\n]*\":\s*)?(`[^`]*`|\"(?:[^\"\\\n]|\\.)*\")\s*(?:,|\))", source):
        literal = found[1]
        yield literal[1:-1] if literal[0] == "`" else literal[1:-1].encode().decode("unicode_escape")


def _rules(folder: Path) -> Iterator[tuple[str, str]]:
    with (folder / "config/gitleaks.toml").open("rb") as file:
        for rule in tomllib.load(file)["rules"]:
            if "regex" in rule:
                yield rule["id"], _in_python(rule["regex"])


def _in_python(form: str) -> str:
    """Return a pattern of Go for Python: a switch in the middle holds up to the end of its group."""
    form = form.replace("[[:alnum:]]", "[A-Za-z0-9]").replace(r"\z", r"\Z")
    at = form.find("(?i)", 1)
    while at > 0:
        depth, end, in_class = 0, at + 4, False
        while end < len(form):
            char = form[end]
            if char == "\\":
                end += 2
                continue
            in_class = char == "[" or (in_class and char != "]")
            if not in_class:
                depth += (char == "(") - (char == ")")
            if depth < 0:
                break
            end += 1
        form = f"{form[:at]}(?i:{form[at + 4 : end]}){form[end:]}"
        at = form.find("(?i)", 1)
    return form


def _made(chance: random.Random, form: str) -> str:
    """Return a secret of the form: what its group matches, the last one behind a name, else the first, or all of it."""
    pattern = re.compile(form)
    tree: Any = parser.parse(form)
    swaps = bool(pattern.flags & re.IGNORECASE)
    for _ in range(200):
        groups = _groups(chance, tree)
        inner = groups[-1 if NAMED in form else 0][3] if groups and "(?P<" not in form else tree
        made = _text_of(chance, inner, swaps=swaps).strip("\"'")
        if pattern.search(made) or NAMED in form:
            return made
    return made


def _groups(chance: random.Random, tree: Any) -> list[Any]:
    """Return the numbered groups of a pattern, of one branch where it has several."""
    found: list[Any] = []
    for code, value in tree:
        if code is codes.SUBPATTERN:
            found += [value] if value[0] is not None else _groups(chance, value[3])
        elif code is codes.BRANCH:
            found += _groups(chance, chance.choice(value[1]))
    return found


def _text_of(chance: random.Random, tree: Any, *, swaps: bool) -> str:
    out = ""
    for code, value in tree:
        made = ""
        if code is codes.LITERAL:
            made = chr(value)
        elif code is codes.IN:
            made = chance.choice([char for char in string.printable[:94] if _is_in(char, value)])
            made = made.swapcase() if swaps and chance.random() < 0.5 else made
        elif code is codes.ANY:
            made = "."  # the rules mean it so: hooks.slack.com
        elif code is codes.BRANCH:
            made = _text_of(chance, chance.choice(value[1]), swaps=swaps)
        elif code is codes.SUBPATTERN:
            inner = (swaps or bool(value[1] & re.IGNORECASE)) and not value[2] & re.IGNORECASE
            made = _text_of(chance, value[3], swaps=inner)
        elif code in {codes.MAX_REPEAT, codes.MIN_REPEAT}:
            least, most, inner = value
            times = chance.randint(least, min(int(most), least + 20))
            made = "".join(_text_of(chance, inner, swaps=swaps) for _ in range(times))
        out += made
    return out


def _is_in(char: str, members: Any) -> bool:
    for code, value in members:
        if code is codes.LITERAL and ord(char) == value:
            return True
        if code is codes.RANGE and value[0] <= ord(char) <= value[1]:
            return True
        if code is codes.CATEGORY and (
            (value is codes.CATEGORY_WORD and (char.isalnum() or char == "_"))
            or (value is codes.CATEGORY_DIGIT and char.isdigit())
        ):
            return True
    return False
