"""Edits one entry of a settings file in JSON, JSON5 or TOML, and keeps the rest of the text."""

from __future__ import annotations

import json
import re
from typing import Any

from notewell.settings.option import toml_value
from notewell.sources.transcripts.json5 import (
    Container,
    Item,
    after_blanks,
    container_at,
    error_at,
    read_container,
    tokens_of,
    unquoted,
)

DEFAULT_UNIT = "  "  # of indentation
MAX_DEPTH = 200  # deeper than any settings file, and well below Python's recursion limit

_NUMBER = re.compile(r"[+-]?(?:0[xX][0-9a-fA-F]+|Infinity|NaN|(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)")
_WORDS = {"true": True, "false": False, "null": None}


# --- JSON and JSON5 ------------------------------------------------------------------------------


def values_of(text: str) -> dict[str, Any]:
    """Return the object in the text; blank text counts as an empty object. Raises Json5Error for anything else."""
    start = after_blanks(text, 0)
    if start == len(text):
        return {}
    if text[start] != "{":
        raise error_at(text, start, "expected an object")
    tokens = tokens_of(text, start)
    values: dict[int, Any] = {}  # by position
    depth = 0

    def read(at: int, first: str) -> int:
        nonlocal depth
        if first not in ("{", "["):
            values[at] = _scalar(text, at, first)
            return at + len(first)
        depth += 1
        if depth > MAX_DEPTH:
            raise error_at(text, at, "nested too deeply")
        found = read_container(text, tokens, at, first, read)
        inner = [values.pop(each.value_start) for each in found.items]
        values[at] = inner if first == "[" else dict(zip((each.name for each in found.items), inner, strict=True))
        depth -= 1
        return found.end

    if (rest := after_blanks(text, read(*next(tokens)))) < len(text):
        raise error_at(text, rest, "expected the end")
    return values[start]  # type: ignore[no-any-return]


def _scalar(text: str, start: int, token: str) -> Any:
    if token[0] in "\"'":
        return unquoted(text, start, token)
    if token in _WORDS:
        return _WORDS[token]
    if not _NUMBER.fullmatch(token):
        raise error_at(text, start, f"expected a value, found {token!r}")
    try:
        return _number(token)
    except ValueError as error:  # more digits than Python parses
        raise error_at(text, start, str(error)) from error


def _number(text: str) -> float | int:
    sign, digits = (-1 if text[0] == "-" else 1), text.lstrip("+-")
    if digits[:2].lower() == "0x":
        return sign * int(digits, 16)
    if digits in {"Infinity", "NaN"}:
        return sign * float(digits)
    return sign * (float(digits) if set(digits) & set(".eE") else int(digits))


def with_member(text: str, keys: tuple[str, ...], value: object) -> str:
    """Return the text with the member set, in the style of the file; missing parent objects are created."""
    newline = "\r\n" if "\r\n" in text else "\n"
    start = after_blanks(text, 0)
    if start == len(text):
        return text + _written(_nested(keys, value), "", DEFAULT_UNIT, newline) + newline
    unit = _indent_unit(text)
    for depth, key in enumerate(keys):
        if text[start] != "{":
            raise error_at(text, start, f"{'.'.join(keys[:depth]) or 'the file'} is not an object")
        table = container_at(text, start)
        item = table.item(key)
        if item is None:
            return _inserted(text, table, key, _nested(keys[depth + 1 :], value), unit=unit, newline=newline)
        if depth == len(keys) - 1:
            new = _written(value, _indent_at(text, item.start), unit, newline)
            return text[: item.value_start] + new + text[item.value_end :]
        start = item.value_start
    raise AssertionError("keys are never empty")


def without_member(text: str, keys: tuple[str, ...]) -> str:
    """Return the text without the member, and without parent objects that become empty."""
    start = after_blanks(text, 0)
    way: list[tuple[Container, Item]] = []
    for key in keys:
        table = container_at(text, start) if text.startswith("{", start) else None
        item = table.item(key) if table else None
        if table is None or item is None:
            return text
        way.append((table, item))
        start = item.value_start
    while len(way) > 1 and len(way[-1][0].items) == 1:
        way.pop()
    return _removed(text, *way[-1])


def _nested(keys: tuple[str, ...], value: object) -> object:
    for key in reversed(keys):
        value = {key: value}
    return value


def _written(value: object, indent: str, unit: str, newline: str) -> str:
    return json.dumps(value, ensure_ascii=False, indent=unit).replace("\n", newline + indent)


def _inserted(text: str, table: Container, key: str, value: object, *, unit: str, newline: str) -> str:
    close = table.end - 1
    outer = _indent_at(text, table.start)
    name = json.dumps(key, ensure_ascii=False)
    if not table.items:
        inner = outer + unit
        kept = text[:close].rstrip()
        return f"{kept}{newline}{inner}{name}: {_written(value, inner, unit, newline)}{newline}{outer}{text[close:]}"
    last = table.items[-1]
    if not last.has_comma:
        text = f"{text[: last.end]},{text[last.end :]}"
        close += 1
    kept = text[:close].rstrip()
    rest = text[len(kept) :]
    if "\n" not in text[table.start : close]:
        return f"{kept} {name}: {_written(value, outer, unit, newline)}{rest}"
    inner = _indent_at(text, last.start)
    rest = rest if "\n" in text[len(kept) : close] else f"{newline}{outer}{text[close:]}"
    comma = "," if last.has_comma else ""
    return f"{kept}{newline}{inner}{name}: {_written(value, inner, unit, newline)}{comma}{rest}"


def _removed(text: str, table: Container, item: Item) -> str:
    start, end = item.start, item.end
    if not item.has_comma and len(table.items) > 1:  # then the comma before it goes
        comma = table.items[-2].end - 1
        text = text[:comma] + text[comma + 1 :]
        start, end = start - 1, end - 1
    line = text.rfind("\n", 0, start) + 1
    if not text[line:start].strip():
        rest = re.compile(r"[ \t]*\r?\n").match(text, end)
        if rest:  # it had its lines to itself
            return text[:line] + text[rest.end() :]
        start = line and line - 1
    kept = text[:start].rstrip(" \t")
    return kept + (text[end:].lstrip(" \t") if kept.endswith("{") else text[end:])


def _indent_at(text: str, at: int) -> str:
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _indent_unit(text: str) -> str:
    found = re.search(r"\{[^\n{}\"']*\n([ \t]+)", text)
    return found[1] if found else DEFAULT_UNIT


# --- TOML ----------------------------------------------------------------------------------------
_HEADER = re.compile(r"^[ \t]*\[{1,2}[^\n]*$", re.MULTILINE)
_COMMENTS = re.compile(r"(?:^[ \t]*(?:#[^\n]*)?\r?\n)*\Z", re.MULTILINE)


def with_table(text: str, keys: tuple[str, str], values: dict[str, Any]) -> str:
    """Return the text with the table set: in place, or at the end if it is new."""
    newline = "\r\n" if "\r\n" in text else "\n"
    lines = [
        f"[{'.'.join(map(_key, keys))}]",
        *(f"{_key(name)} = {toml_value(value)}" for name, value in values.items()),
    ]
    block = newline.join(lines) + newline
    spans = _spans(text, keys)
    if spans:
        for start, end in reversed(spans[1:]):
            text = text[:start] + text[end:]
        start, end = spans[0]
        gap = newline if text[end:].strip() else ""
        return text[:start] + block + gap + text[end:].lstrip("\r\n")
    if not text.strip():
        return text + block
    ends = "" if text.endswith("\n") else newline
    return f"{text}{ends}{newline}{block}"


def without_table(text: str, keys: tuple[str, str]) -> str:
    """Return the text without the table and its sub-tables."""
    for start, end in reversed(_spans(text, keys)):
        before, after = text[:start].rstrip("\r\n"), text[end:].lstrip("\r\n")
        newline = "\r\n" if "\r\n" in text else "\n"
        joined = newline * 2 if before and after else newline if before else ""
        text = before + joined + after
    return text


def _spans(text: str, keys: tuple[str, str]) -> list[tuple[int, int]]:
    """Return the spans of the table and its sub-tables; comments above the next table belong to it."""
    names = r"\s*\.\s*".join(rf"(?:{re.escape(key)}|\"{re.escape(key)}\"|'{re.escape(key)}')" for key in keys)
    own = re.compile(rf"[ \t]*\[\s*{names}\s*(?:\.[^\n]*)?\][ \t]*(?:#[^\n]*)?\r?$")
    headers = [(found.start(), found[0]) for found in _HEADER.finditer(text)]
    spans = []
    for number, (start, header) in enumerate(headers):
        if own.match(header):
            end = headers[number + 1][0] if number + 1 < len(headers) else len(text)
            if number + 1 < len(headers):
                above = _COMMENTS.search(text[start:end])
                end = start + above.start() if above else end
            spans.append((start, end))
    return spans


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else json.dumps(name, ensure_ascii=False)
