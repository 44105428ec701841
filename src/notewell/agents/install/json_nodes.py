"""The text of a settings file in JSON, JSON with comments or JSON5 in, its values with where they stand out."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

_BLANK = re.compile(r"(?:[\s\ufeff]+|//[^\n\r]*|/\*.*?\*/)*", re.DOTALL)
_NAME = re.compile(r"[\w$]+")
_NUMBER = re.compile(r"[+-]?(?:0[xX][0-9a-fA-F]+|Infinity|NaN|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)")
_WORDS = {"true": True, "false": False, "null": None}
_ESCAPES = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "0": "\0"}
DEEPEST = 200  # no settings file is deeper, and Python's stack ends


class JsonTextError(ValueError):
    """The text is not what it should be; the message says where."""


@dataclass(slots=True)
class Member:
    """One `key: value` of an object."""

    key: str
    start: int  # of the key
    value: Node


@dataclass(slots=True)
class Node:
    """A value and where it stands: from `start` up to but not including `end`."""

    start: int
    end: int
    value: Any
    members: list[Member] = field(default_factory=list)

    def member(self, key: str) -> Member | None:
        """Return the last member of that name, which is the one that counts."""
        return next((member for member in reversed(self.members) if member.key == key), None)


def parse_json(text: str) -> Node:
    """Return the one value of the text; comments, trailing commas and JSON5's liberties are understood."""
    reader = _Reader(text)
    reader.skip()
    node = reader.value(0)
    reader.skip()
    if reader.at < len(text):
        raise reader.wrong("something follows the end")
    return node


def after_blanks(text: str, at: int) -> int:
    """Return the place behind blanks and comments."""
    found = _BLANK.match(text, at)
    assert found
    return found.end()


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def skip(self) -> None:
        self.at = after_blanks(self.text, self.at)

    def wrong(self, reason: str) -> JsonTextError:
        line = self.text.count("\n", 0, self.at) + 1
        return JsonTextError(f"line {line}: {reason}")

    def value(self, depth: int) -> Node:
        if depth > DEEPEST:
            raise self.wrong("too deep")
        start = self.at
        char = self.text[start : start + 1]
        if char == "{":
            return self._object(depth)
        if char == "[":
            items: list[Any] = []
            self._list("]", lambda: items.append(self.value(depth + 1).value))
            return Node(start, self.at, items)
        if char in {'"', "'"}:
            said = self._string(char)
            return Node(start, self.at, said)
        number = _NUMBER.match(self.text, start)
        if number:
            self.at = number.end()
            return Node(start, self.at, _number(number[0]))
        word = _NAME.match(self.text, start)
        if word and word[0] in _WORDS:
            self.at = word.end()
            return Node(start, self.at, _WORDS[word[0]])
        raise self.wrong("a value is missing" if not char else f"unexpected {char!r}")

    def _object(self, depth: int) -> Node:
        start = self.at
        members: list[Member] = []

        def member() -> None:
            key_start = self.at
            char = self.text[self.at : self.at + 1]
            name = _NAME.match(self.text, self.at)
            if char in {'"', "'"}:
                key = self._string(char)
            elif name:
                key, self.at = name[0], name.end()
            else:
                raise self.wrong(f"a key is missing before {char!r}" if char else "the file ends in the middle")
            self.skip()
            if self.text[self.at : self.at + 1] != ":":
                raise self.wrong("a colon is missing")
            self.at += 1
            self.skip()
            members.append(Member(key, key_start, self.value(depth + 1)))

        self._list("}", member)
        return Node(start, self.at, {each.key: each.value.value for each in members}, members)

    def _list(self, close: str, one: Callable[[], object]) -> None:
        self.at += 1
        self.skip()
        while self.text[self.at : self.at + 1] != close:
            one()
            self.skip()
            if self.text[self.at : self.at + 1] == ",":
                self.at += 1
                self.skip()
            elif self.text[self.at : self.at + 1] != close:
                raise self.wrong(f"a comma or {close!r} is missing")
        self.at += 1

    def _string(self, quote: str) -> str:
        self.at += 1
        parts: list[str] = []
        while True:
            char = self.text[self.at : self.at + 1]
            if not char or char in "\n\r":
                raise self.wrong("a text is never closed")
            self.at += 1
            if char == quote:
                return "".join(parts).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
            parts.append(self._escape() if char == "\\" else char)

    def _escape(self) -> str:
        char = self.text[self.at : self.at + 1]
        self.at += 1
        if char in {"u", "x"}:
            length = 4 if char == "u" else 2
            digits = self.text[self.at : self.at + length]
            if not re.fullmatch(rf"[0-9a-fA-F]{{{length}}}", digits):
                raise self.wrong("a broken escape")
            self.at += length
            return chr(int(digits, 16))
        if char == "\r" and self.text[self.at : self.at + 1] == "\n":
            self.at += 1
        return "" if char in "\r\n\u2028\u2029" else _ESCAPES.get(char, char)


def _number(text: str) -> float | int:
    sign, digits = (-1 if text[0] == "-" else 1), text.lstrip("+-")
    if digits[:2].lower() == "0x":
        return sign * int(digits, 16)
    if digits in {"Infinity", "NaN"}:
        return sign * float(digits)
    return sign * (float(digits) if set(digits) & set(".eE") else int(digits))


def json_text(value: object, indent: str, unit: str, newline: str) -> str:
    """Return a value as JSON over several lines, for a place that is indented so."""
    text = json.dumps(value, ensure_ascii=False, indent=unit)
    return text.replace("\n", newline + indent)
