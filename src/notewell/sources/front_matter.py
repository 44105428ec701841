"""The text of a note in, its front matter as plain strings and the first line of its body out."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

MAX_LINES = 200  # a block longer than a screenful of settings is text between two thematic breaks
_CLOSERS = frozenset({"---", "..."})
_KEY = re.compile(r"""(?P<key>[^\W\d][\w .-]{0,60}?|"[^"]{1,60}"|'[^']{1,60}')[ ]*:(?:[ \t]+(?P<value>.*))?$""")
_ITEM = re.compile(r"[ \t]*-(?:[ \t]+|$)(?P<value>.*)$")
_COMMENT = re.compile(r"(?:^|[ \t]+)#.*$")
_LIST_PARTS = re.compile(r"""[ \t]*("(?:[^"\\]|\\.)*"|'(?:[^']|'')*'|[^,]+)""")
_ESCAPED = re.compile(r"\\(.)")
_BLOCK_STYLES = frozenset({"|", ">", "|-", ">-", "|+", ">+"})


def split_front_matter(text: str) -> tuple[dict[str, str], int]:
    """Return the front matter and the 1-based line where the body begins; `({}, 1)` when there is none.

    Keys are in lower case, lists are joined by ", ". In doubt a block is not front matter: its text is then indexed
    like any other instead of being lost.
    """
    if not text.startswith("---"):
        return {}, 1
    lines = text.split("\n", MAX_LINES + 2)[: MAX_LINES + 2]
    if lines[0].rstrip() != "---":
        return {}, 1
    closing = next((i for i, line in enumerate(lines) if i and line.rstrip() in _CLOSERS), None)
    if closing is None:
        return {}, 1
    block = lines[1:closing]
    if not _looks_like_settings(block):
        return {}, 1
    return dict(_entries(block)), closing + 2


def _looks_like_settings(block: Sequence[str]) -> bool:
    """Tell settings from prose between two thematic breaks: every line at the margin must be one of a setting."""
    at_margin = [line for line in block if line.strip() and not line[0].isspace() and not line.startswith("#")]
    if not at_margin:
        return not any(line.strip() for line in block)
    return _KEY.match(at_margin[0]) is not None and all(
        _KEY.match(line) or _ITEM.match(line) or line[0] in "]}" for line in at_margin
    )


def _entries(block: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield each key with its value; lines that follow a key and are not keys themselves belong to it."""
    key, value = "", ""
    rest: list[str] = []
    for line in block:
        found = _KEY.match(line)
        if found is None:
            rest.append(line)
            continue
        if key:
            yield key, _value(value, rest)
        key, value, rest = _unquoted(found["key"]).lower(), (found["value"] or "").strip(), []
    if key:
        yield key, _value(value, rest)


def _value(first: str, rest: Sequence[str]) -> str:
    following = [line for line in rest if line.strip() and not line.lstrip().startswith("#")]
    if first in _BLOCK_STYLES:
        return " ".join(line.strip() for line in following)
    if not first and following and all(_ITEM.match(line) for line in following):
        return ", ".join(_scalar(line.lstrip()[1:]) for line in following)
    return _scalar(" ".join([first, *(line.strip() for line in following)]))


def _scalar(value: str) -> str:
    value = value.strip()
    if value[:1] in {'"', "'"}:
        return _unquoted(value)
    value = _COMMENT.sub("", value).strip()
    if value.startswith("[") and value.endswith("]"):
        parts = (_unquoted(part.strip()) for part in _LIST_PARTS.findall(value[1:-1]))
        return ", ".join(part for part in parts if part)
    return value


def _unquoted(value: str) -> str:
    quote = value[:1]
    end = value.rfind(quote) if quote in {'"', "'"} else 0
    if end < 1:
        return value
    inner = value[1:end]
    return _ESCAPED.sub(r"\1", inner) if quote == '"' else inner.replace("''", "'")
