"""Reads the front matter of a note, and the day that its name or front matter gives it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import date

MAX_LINES = 200  # a block longer than a screenful of settings is text between two thematic breaks
_CLOSERS = frozenset({"---", "..."})
_KEY = re.compile(r"""(?P<key>[^\W\d][\w .-]{0,60}?|"[^"]{1,60}"|'[^']{1,60}')[ ]*:(?:[ \t]+(?P<value>.*))?$""")
_ITEM = re.compile(r"[ \t]*-(?:[ \t]+|$)(?P<value>.*)$")
_COMMENT = re.compile(r"(?:^|[ \t]+)#.*$")
_LIST_PARTS = re.compile(r"""[ \t]*("(?:[^"\\]|\\.)*"|'(?:[^']|'')*'|[^,]+)""")
_ESCAPED = re.compile(r"\\(.)")
_BLOCK_STYLES = frozenset({"|", ">", "|-", ">-", "|+", ">+"})
# The date ends the name or is parted from the rest of it: 2026-11-150.md and 2026-11-15b.md are not dated.
_IN_NAME = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})(?=[-_ ]|\.[^.]*$|$)")
_CLOCK = r"[0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]+)?)? ?(?:[Zz]|[+-][0-9]{2}:?[0-9]{2})?"
_IN_FRONT_MATTER = re.compile(rf"([0-9]{{4}})(?:-([0-9]{{2}})-|/([0-9]{{2}})/)([0-9]{{2}})(?:[Tt ]{_CLOCK})?")


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


# --- dates -------------------------------------------------------------------------------------


def note_date(path: str, metadata: Mapping[str, str]) -> date | None:
    """Return the day of a note: the date its file name begins with, or else the `date` of its front matter.

    A note without a date is evergreen.
    """
    return date_in_name(path) or date_in_front_matter(metadata)


def date_in_name(path: str) -> date | None:
    """Return the date a file name begins with (`2026-11-15.md`, `2026-11-15-slug.md`), in whichever folder it lies."""
    found = _IN_NAME.match(path, path.rfind("/") + 1)
    return _day(*found.groups()) if found else None


def date_in_front_matter(metadata: Mapping[str, str]) -> date | None:
    """Return the day that `date` names (`2026-03-14`, `2026/03/14`, with or without a time); None for other forms."""
    found = _IN_FRONT_MATTER.fullmatch(metadata.get("date", ""))
    return _day(found[1], found[2] or found[3], found[4]) if found else None


def _day(year: str, month: str, day: str) -> date | None:
    try:
        return date(int(year), int(month), int(day))
    except ValueError:  # 2026-02-30 looks like a date and is none
        return None
