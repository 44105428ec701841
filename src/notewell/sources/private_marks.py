"""Tells whether the front matter of a note marks it as private, in YAML, TOML or JSON; in doubt it does.

A note that mentions neither `private` nor `visibility` in its front matter is not parsed at all, so YAML is loaded for
few notes. Keys count at any depth, twice given ones each, and every value of `private` that is not plainly a no.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping

_NO = frozenset({"false", "no", "n", "off", "0", "0.0"})
_MENTION = re.compile(r"private|visibility", re.IGNORECASE)
_BLANK = " \t\r\n\f\v\ufeff\u200b"  # a byte order mark in the middle of joined files, too
# `%YAML 1.2`, comments and blank lines before the first line of a YAML document.
_DIRECTIVES = re.compile(r"(?:%.*\n|[ \t]*(?:#.*)?\r?\n)+(?=---)")
_OPENING = re.compile(r"(---|\+\+\+|;;;)(?:[ \t].*|[a-z]+[ \t]*)?$")  # some programs name the language: `---toml`
_CLOSERS = {"---": frozenset({"---", "..."}), "+++": frozenset({"+++"}), ";;;": frozenset({";;;"})}
_ESCAPE = re.compile(r"\\(?:x([0-9a-f]{2})|u([0-9a-f]{4})|U([0-9a-f]{8})|\n[ \t]*)", re.IGNORECASE)
# In what could not be read as front matter the wish is honoured all the same, where it is written as a line of its own.
_WISH = re.compile(
    r"^[ \t]*[\"']?(?:private[\"']?[ \t]*[:=][ \t]*[\"']?(?:true|yes|on|1)\b"
    r"|visibility[\"']?[ \t]*[:=][ \t]*[\"']?private\b)",
    re.IGNORECASE | re.MULTILINE,
)
_WISH_IN_BRACES = re.compile(r"[\"']?private[\"']?\s*:\s*[\"']?(?:true|yes|on|1)\b", re.IGNORECASE)
# Above these a parser could take long (libyaml's time grows with the square of the depth): that is a doubt, too.
MOST_PARSED = 64 * 1024  # characters
MOST_BRACKETS = 500


def marked_private(text: str) -> bool:
    """Return whether the front matter of a note says that the note is for its owner alone."""
    text = text.lstrip(_BLANK)
    if text.startswith("{"):
        return _in_object(text)
    if text.startswith("%") and (directives := _DIRECTIVES.match(text)):
        text = text[directives.end() :]
    first, _, rest = text.partition("\n")
    opening = _OPENING.match(first.rstrip())
    if opening is None:
        return False
    language = first[3:].strip() if first[3:4].isalpha() else ""
    # What follows the dashes on their line belongs to the document: `--- {private: true}`, `--- !!map`.
    block = _block(rest if language else f"{first[3:]}\n{rest}", _CLOSERS[opening[1]])
    if block is None:  # never closed: perhaps a thematic break, perhaps front matter that was cut off
        return _WISH.search(text) is not None
    if not _MENTION.search(_ESCAPE.sub(_unescaped, block)):
        return False
    if len(block) > MOST_PARSED or sum(map(block.count, "[{")) > MOST_BRACKETS:
        return True
    kind = language or {"---": "yaml", "+++": "toml", ";;;": "json"}[opening[1]]
    return _says_so(_READERS.get(kind, _yaml_entries), block)


def _block(rest: str, closers: frozenset[str]) -> str | None:
    """Return the text up to the line that closes it, leaving out empty blocks before; None when none does."""
    at = begins = 0
    while at < len(rest):
        ends = rest.find("\n", at)
        line = rest[at : ends if ends >= 0 else len(rest)]
        if line.rstrip() in closers:
            if rest[begins:at].strip(_BLANK):
                return rest[begins:at]
            begins = at + len(line) + 1
        at += len(line) + 1
    return None


def _unescaped(found: re.Match[str]) -> str:
    digits = found[1] or found[2] or found[3]
    try:
        return chr(int(digits, 16)) if digits else ""
    except (OverflowError, ValueError):
        return " "


def _in_object(text: str) -> bool:
    """Read a note that begins with a JSON object."""
    if not _MENTION.search(_ESCAPE.sub(_unescaped, text)):
        return False
    try:
        found, _ = json.JSONDecoder(object_pairs_hook=_Pairs).raw_decode(text)
    except (ValueError, RecursionError):  # perhaps a template (`{{ title }}`), perhaps JSON with a mistake
        return _WISH_IN_BRACES.search(text) is not None
    return any(_is_private(key, value) for key, value in _entries(found))


def _says_so(entries: Callable[[str], Iterator[tuple[str, object]]], block: str) -> bool:
    try:
        return any(_is_private(key, value) for key, value in entries(block))
    except (ValueError, RecursionError):  # of which the errors of all three parsers are
        return True


def _is_private(key: str, value: object) -> bool:
    key = key.strip().casefold()
    said = value.strip().casefold() if isinstance(value, str) else str(value).casefold()
    return (key == "private" and said not in _NO) or (key == "visibility" and "private" in said)


# --- parsers: each yields the keys with their values, those of inner tables, too ------------------


class _Pairs(list[tuple[str, object]]):
    """A JSON object with the keys that were given twice."""


def _entries(value: object) -> Iterator[tuple[str, object]]:
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, Mapping | _Pairs):
            pairs = list(each.items() if isinstance(each, Mapping) else each)
            yield from pairs
            waiting += [inner for _, inner in pairs]
        elif isinstance(each, list):
            waiting += each


def _toml_entries(block: str) -> Iterator[tuple[str, object]]:
    import tomllib

    return _entries(tomllib.loads(block))


def _json_entries(block: str) -> Iterator[tuple[str, object]]:
    block = block.strip()
    block = block if block.startswith("{") else f"{{{block}}}"  # between `;;;` the braces may be left out
    return _entries(json.loads(block, object_pairs_hook=_Pairs))


def _yaml_entries(block: str) -> Iterator[tuple[str, object]]:
    """Follow the events of the parser: it is not recursive, and no tag of YAML makes it build an object."""
    import yaml  # costs 15 ms

    document = f"---{block}" if block[:1].isspace() else f"---\n{block}"
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    named: dict[str, str] = {}  # scalars with an anchor
    waiting: list[str | None] = []  # for each open mapping the key whose value comes next; for a list `_ITEMS`
    try:
        for event in yaml.parse(document, Loader=loader):
            if isinstance(event, yaml.CollectionEndEvent):
                waiting.pop()
            if not isinstance(event, yaml.NodeEvent):
                continue
            node = getattr(event, "value", named.get(event.anchor, _OTHER))  # of an alias what its anchor names
            if event.anchor and isinstance(event, yaml.ScalarEvent):
                named[event.anchor] = node
            if waiting and waiting[-1] is None:
                waiting[-1] = node
            elif waiting and waiting[-1] is not _ITEMS:
                yield str(waiting[-1]), node
                waiting[-1] = None
            if isinstance(event, yaml.CollectionStartEvent):
                waiting.append(None if isinstance(event, yaml.MappingStartEvent) else _ITEMS)
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from error


_ITEMS, _OTHER = "\0items", "\0other"  # no scalar of YAML holds NUL
_READERS: dict[str, Callable[[str], Iterator[tuple[str, object]]]] = {
    "yaml": _yaml_entries,
    "toml": _toml_entries,
    "json": _json_entries,
}
