"""Edits one entry of a settings file in JSON, JSON5 or TOML, and keeps the rest of the text as it is."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

DEFAULT_UNIT = "  "  # of indentation
MAX_DEPTH = 200  # deeper than any settings file, and well below Python's recursion limit

_BLANK = re.compile(r"(?:[\s\ufeff]+|//[^\n\r]*|/\*.*?\*/)*", re.DOTALL)
_TOKEN = re.compile(
    r"""
    "(?:[^"\\\n\r]|\\(?:\r\n|.))*"
  | '(?:[^'\\\n\r]|\\(?:\r\n|.))*'
  | [{}\[\],:]
  | [^\s"'{}\[\],:/\ufeff]+
    """,
    re.VERBOSE | re.DOTALL,
)
_NAME = re.compile(r"[\w$]+")
_NUMBER = re.compile(r"[+-]?(?:0[xX][0-9a-fA-F]+|Infinity|NaN|(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)")
_WORDS = {"true": True, "false": False, "null": None}
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|(\r\n|.))", re.DOTALL)
_ESCAPED = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "0": "\0"} | dict.fromkeys(
    ("\r\n", "\r", "\n", "\u2028", "\u2029"), ""
)


class JsonTextError(ValueError):
    """The text is not valid; the message says where."""


@dataclass(slots=True)
class Member:
    """One `key: value` of an object."""

    key: str
    start: int  # of the key
    value: Node


@dataclass(slots=True)
class Node:
    """A value and its span in the text, the end exclusive."""

    start: int
    end: int
    value: Any
    members: list[Member] = field(default_factory=list)

    def member(self, key: str) -> Member | None:
        """Return the last member of that name, which is the one that counts."""
        return next((member for member in reversed(self.members) if member.key == key), None)


# --- JSON, with comments and what else JSON5 allows ----------------------------------------------


def values_of(text: str) -> dict[str, Any]:
    """Return the object in the text; blank text counts as an empty object."""
    if _after_blanks(text, 0) == len(text):
        return {}
    value = parse_json(text).value
    if not isinstance(value, dict):
        raise JsonTextError("line 1: expected an object")
    return value


def parse_json(text: str) -> Node:
    """Return the value of the text, which may have comments, trailing commas and what else JSON5 allows."""
    parser = _Parser(text)
    node = parser.value(0)
    parser.expect("")
    return node


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0  # where the next token starts
        self._tokens = self._scan()
        self.next = next(self._tokens)  # empty at the end

    def _scan(self) -> Iterator[str]:
        while (at := _after_blanks(self.text, self.at)) < len(self.text):
            self.at = at
            found = _TOKEN.match(self.text, at)
            if found is None:
                raise self.wrong("unclosed string" if self.text[at] in "\"'" else f"unexpected {self.text[at]!r}")
            yield found[0]
            self.at = found.end()
        self.at = len(self.text)
        yield ""

    def wrong(self, reason: str) -> JsonTextError:
        return JsonTextError(f"line {self.text.count(chr(10), 0, self.at) + 1}: {reason}")

    def take(self) -> str:
        token = self.next
        self.next = next(self._tokens, "")
        return token

    def expect(self, token: str) -> int:
        """Take this token and return where it ends."""
        if self.next != token:
            expected = repr(token) if token else "the end"
            raise self.wrong(f"expected {expected}, found {self.next!r}" if self.next else "the text ends too early")
        end = self.at + len(token)
        self.take()
        return end

    def value(self, depth: int) -> Node:
        if depth > MAX_DEPTH:
            raise self.wrong("nested too deeply")
        start = self.at
        if self.next == "{":
            members: list[Member] = []
            end = self._items("}", lambda: members.append(self._member(depth)))
            return Node(start, end, {each.key: each.value.value for each in members}, members)
        if self.next == "[":
            items: list[Any] = []
            end = self._items("]", lambda: items.append(self.value(depth + 1).value))
            return Node(start, end, items)
        return Node(start, start + len(self.next), self._scalar())

    def _items(self, close: str, one: Callable[[], object]) -> int:
        self.take()
        while self.next != close:
            one()
            if self.next != close:
                self.expect(",")
        return self.expect(close)

    def _member(self, depth: int) -> Member:
        start = self.at
        if self.next[:1] in {'"', "'"}:
            key = self._string()
        elif _NAME.fullmatch(self.next):
            key = self.take()
        else:
            raise self.wrong(f"expected a key, found {self.next!r}" if self.next else "the text ends too early")
        self.expect(":")
        return Member(key, start, self.value(depth + 1))

    def _scalar(self) -> object:
        if self.next[:1] in {'"', "'"}:
            return self._string()
        if self.next in _WORDS:
            return _WORDS[self.take()]
        if _NUMBER.fullmatch(self.next):
            try:
                return _number(self.take())
            except ValueError as error:  # more digits than Python reads
                raise self.wrong(str(error)) from error
        raise self.wrong(f"expected a value, found {self.next!r}" if self.next else "the text ends too early")

    def _string(self) -> str:
        def unescaped(found: re.Match[str]) -> str:
            code = found[1] or found[2]
            if not code and found[3] in {"u", "x"}:
                raise self.wrong("invalid escape")
            return chr(int(code, 16)) if code else _ESCAPED.get(found[3], found[3])

        text = _ESCAPE.sub(unescaped, self.next[1:-1])
        self.take()
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _number(text: str) -> float | int:
    sign, digits = (-1 if text[0] == "-" else 1), text.lstrip("+-")
    if digits[:2].lower() == "0x":
        return sign * int(digits, 16)
    if digits in {"Infinity", "NaN"}:
        return sign * float(digits)
    return sign * (float(digits) if set(digits) & set(".eE") else int(digits))


def _after_blanks(text: str, at: int) -> int:
    """Return the position after blanks and comments."""
    found = _BLANK.match(text, at)
    assert found
    return found.end()


def with_member(text: str, keys: tuple[str, ...], value: object) -> str:
    """Return the text with the member set, in the style of the file; missing objects on the way are created."""
    newline = "\r\n" if "\r\n" in text else "\n"
    if _after_blanks(text, 0) == len(text):
        return text + _written(_nested(keys, value), "", DEFAULT_UNIT, newline) + newline
    unit = _indent_unit(text)
    node = parse_json(text)
    for depth, key in enumerate(keys):
        if not isinstance(node.value, dict):
            raise JsonTextError(f"{'.'.join(keys[:depth]) or 'the file'} is not an object")
        member = node.member(key)
        if member is None:
            return _inserted(text, node, key, _nested(keys[depth + 1 :], value), unit=unit, newline=newline)
        if depth == len(keys) - 1:
            new = _written(value, _indent_at(text, member.start), unit, newline)
            return text[: member.value.start] + new + text[member.value.end :]
        node = member.value
    raise AssertionError("keys are never empty")


def without_member(text: str, keys: tuple[str, ...]) -> str:
    """Return the text without the member, and without objects on the way that would be left empty."""
    node = parse_json(text)
    way: list[tuple[Node, Member]] = []
    for key in keys:
        member = node.member(key)
        if member is None:
            return text
        way.append((node, member))
        node = member.value
    while len(way) > 1 and len(way[-1][0].members) == 1:
        way.pop()
    return _removed(text, *way[-1])


def _nested(keys: tuple[str, ...], value: object) -> object:
    for key in reversed(keys):
        value = {key: value}
    return value


def _written(value: object, indent: str, unit: str, newline: str) -> str:
    return json.dumps(value, ensure_ascii=False, indent=unit).replace("\n", newline + indent)


def _inserted(text: str, node: Node, key: str, value: object, *, unit: str, newline: str) -> str:
    close = node.end - 1
    outer = _indent_at(text, node.start)
    name = json.dumps(key, ensure_ascii=False)
    if not node.members:
        inner = outer + unit
        kept = text[:close].rstrip()
        return f"{kept}{newline}{inner}{name}: {_written(value, inner, unit, newline)}{newline}{outer}{text[close:]}"
    last = node.members[-1]
    has_comma = text.startswith(",", _after_blanks(text, last.value.end))
    if not has_comma:
        text = f"{text[: last.value.end]},{text[last.value.end :]}"
        close += 1
    kept = text[:close].rstrip()
    rest = text[len(kept) :]
    if "\n" not in text[node.start : close]:
        return f"{kept} {name}: {_written(value, outer, unit, newline)}{rest}"
    inner = _indent_at(text, last.start)
    rest = rest if "\n" in text[len(kept) : close] else f"{newline}{outer}{text[close:]}"
    return f"{kept}{newline}{inner}{name}: {_written(value, inner, unit, newline)}{',' if has_comma else ''}{rest}"


def _removed(text: str, node: Node, member: Member) -> str:
    start, end = member.start, member.value.end
    comma = _after_blanks(text, end)
    if text.startswith(",", comma):
        end = comma + 1
    elif member is node.members[-1] and len(node.members) > 1:  # then the comma before it goes
        comma = _after_blanks(text, node.members[-2].value.end)
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
    lines = [f"[{'.'.join(map(_key, keys))}]", *(f"{_key(name)} = {_value(value)}" for name, value in values.items())]
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
    """Return the spans of the table and its sub-tables; comments above the next table belong to that one."""
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


def _value(value: object) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]"
    return json.dumps(value, ensure_ascii=False)  # strings, numbers and booleans are written alike in JSON and TOML
