"""A settings file's text, keys that lead to a member and its value in; the text with just that changed out."""

from __future__ import annotations

import re
from typing import Any

from notewell.agents.install.json_nodes import JsonTextError, Member, Node, after_blanks, json_text, parse_json

DEFAULT_UNIT = "  "


def values_of(text: str) -> dict[str, Any]:
    """Return what the file says; a file without a value says nothing."""
    if after_blanks(text, 0) == len(text):
        return {}
    value = parse_json(text).value
    if not isinstance(value, dict):
        raise JsonTextError("line 1: an object is expected")
    return value


def with_member(text: str, keys: tuple[str, ...], value: object) -> str:
    """Return the text with the member set; objects on the way are made, everything else stays as it is."""
    newline = "\r\n" if "\r\n" in text else "\n"
    if after_blanks(text, 0) == len(text):
        return text + json_text(_nested(keys, value), "", DEFAULT_UNIT, newline) + newline
    unit = _unit_of(text)
    node = parse_json(text)
    for depth, key in enumerate(keys):
        if not isinstance(node.value, dict):
            raise JsonTextError(f"{'.'.join(keys[:depth]) or 'the file'} is not an object")
        member = node.member(key)
        if member is None:
            return _inserted(text, node, key, _nested(keys[depth + 1 :], value), unit=unit, newline=newline)
        if depth == len(keys) - 1:
            new = json_text(value, _indent_at(text, member.start), unit, newline)
            return text[: member.value.start] + new + text[member.value.end :]
        node = member.value
    raise AssertionError("a member has a key")


def without_member(text: str, keys: tuple[str, ...]) -> str:
    """Return the text without the member, nor the objects on the way that are empty then."""
    node = parse_json(text)
    way: list[tuple[Node, Member]] = []
    for key in keys:
        member = node.member(key)
        if member is None:
            return text
        way.append((node, member))
        node = member.value
    while len(way) > 1 and len(way[-1][0].members) == 1:  # it is all that its object holds
        way.pop()
    return _removed(text, *way[-1])


def _nested(keys: tuple[str, ...], value: object) -> object:
    for key in reversed(keys):
        value = {key: value}
    return value


def _inserted(text: str, node: Node, key: str, value: object, *, unit: str, newline: str) -> str:
    close = node.end - 1
    outer = _indent_at(text, node.start)
    if not node.members:
        inner = outer + unit
        member = f"{newline}{inner}{json_text(key, '', unit, newline)}: {json_text(value, inner, unit, newline)}"
        kept = text[:close].rstrip(" \t\r\n")
        return f"{kept}{member}{newline}{outer}{text[close:]}"
    last = node.members[-1]
    has_comma = text[after_blanks(text, last.value.end) : close + 1].startswith(",")
    text = text if has_comma else f"{text[: last.value.end]},{text[last.value.end :]}"
    close += 0 if has_comma else 1
    kept = text[:close].rstrip(" \t\r\n")
    if "\n" not in text[node.start : close]:
        return (
            f"{kept} {json_text(key, '', unit, newline)}: {json_text(value, outer, unit, newline)}{text[len(kept) :]}"
        )
    inner = _indent_at(text, last.start)
    member = f"{newline}{inner}{json_text(key, '', unit, newline)}: {json_text(value, inner, unit, newline)}"
    behind = text[len(kept) :] if "\n" in text[len(kept) : close] else f"{newline}{outer}{text[close:]}"
    return f"{kept}{member}{',' if has_comma else ''}{behind}"


def _removed(text: str, node: Node, member: Member) -> str:
    start, end = member.start, member.value.end
    behind = after_blanks(text, end)
    is_last = member is node.members[-1]
    if text[behind : behind + 1] == ",":
        end = behind + 1
    elif is_last and len(node.members) > 1:
        before = node.members[-2].value.end
        comma = after_blanks(text, before)  # the comma that was between the two
        text = text[:comma] + text[comma + 1 :]
        start, end = start - 1, end - 1
    line = text.rfind("\n", 0, start) + 1
    if not text[line:start].strip():
        rest = re.compile(r"[ \t]*\r?\n").match(text, end)
        if rest:  # it stood on lines of its own
            return text[:line] + text[rest.end() :]
        start = line and line - 1
    kept = text[:start].rstrip(" \t")
    return kept + text[end:].lstrip(" \t") if kept.endswith("{") else text[:start].rstrip(" \t") + text[end:]


def _indent_at(text: str, at: int) -> str:
    line = text.rfind("\n", 0, at) + 1
    found = re.compile(r"[ \t]*").match(text, line)
    return found[0] if found else ""


def _unit_of(text: str) -> str:
    found = re.search(r"\{[^\n{}\"']*\n([ \t]+)", text)
    return found[1] if found else DEFAULT_UNIT
