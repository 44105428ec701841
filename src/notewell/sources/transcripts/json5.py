"""Reads and writes JSON5, and tells where members and elements stand in a text.

Parsing is pyjson5's. The spans are ours, because no library tells them: they give messages their line numbers, and let
an edit touch only what it is about.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from notewell.errors import ConversationError, SessionInputError

INSTALL_HINT = 'run `pip install "notewell[sessions]"`'
DEEPEST = 100  # levels of nesting; pyjson5 stops at 32 unless told, and Python's own encoder at about 1,000

_TOKEN = re.compile(
    r"""
    (?P<skip> [\s\ufeff]+ | //[^\n\r\u2028\u2029]* | /\*.*?\*/ )
  | (?P<string> "[^"\\\n\r]*(?:\\.[^"\\\n\r]*)*" | '[^'\\\n\r]*(?:\\.[^'\\\n\r]*)*' )
  | (?P<mark> [{}\[\],:] )
  | (?P<bare> [^\s"'{}\[\],:/\ufeff]+ )
    """,
    re.VERBOSE | re.DOTALL,
)
_NAME = re.compile(r"[A-Za-z_$][\w$]*", re.ASCII)
_LONE_SURROGATES = re.compile("[\ud800-\udfff]")
_LINE_SEPARATORS = {"\u2028": "\\u2028", "\u2029": "\\u2029"}  # legal in JSON5, but tools that cut lines cut there


class Json5Error(ValueError):
    """The text is not JSON5; says where."""

    position: int | None = None  # how far it could be read; None: to its end


@dataclass(frozen=True, slots=True)
class Item:
    """A member of an object or an element of an array: offsets into the text, the comma after it included in `end`."""

    name: str  # of a member; empty for an element
    start: int  # of the key, or of the element
    value_start: int
    value_end: int
    end: int
    has_comma: bool


@dataclass(frozen=True, slots=True)
class Container:
    """An object or array of a text: its brackets' offsets and what is inside, in order."""

    start: int
    end: int  # the offset after the closing bracket
    items: tuple[Item, ...]

    def item(self, name: str) -> Item | None:
        """Return the member of this name; the last one counts, as in every JSON5 reader."""
        return next((item for item in reversed(self.items) if item.name == name), None)


@dataclass(frozen=True, slots=True)
class Layout:
    """How a file is laid out whose array grows: the name of the array, and the comment on top of a new file."""

    array: str  # "messages"
    opening_comment: str

    @property
    def opening(self) -> str:
        """The line before the first element."""
        return f"  {self.array}: [\n"

    @property
    def end_mark(self) -> str:
        """The line after the last element; strings that we write hold no line break, so nothing else is this line."""
        return f"  ], // end of {self.array}\n"

    @property
    def end_field(self) -> str:
        """The field of the foot that says where the end mark is, in bytes; it differs after an edit by hand."""
        return f"{self.array}End"


def parse_json5(text: str) -> Any:
    """Return the value of the text; raises Json5Error, with the line, where it is none."""
    decoder = _pyjson5()
    try:
        return decoder.decode(text, maxdepth=DEEPEST + 10)
    except decoder.Json5Exception as error:
        message = str(error.args[0]) if error.args else "not JSON5"
        place = re.search(r"near (\d+)", message)
        line = text.count("\n", 0, int(place[1])) + 1 if place else 0
        raise Json5Error(f"line {line}: not valid JSON5" if line else message) from error
    except (RecursionError, UnicodeError, ValueError) as error:
        raise Json5Error(str(error)) from error


def decode_json5(data: bytes) -> str:
    """Return the text of a file; raises Json5Error where it is not UTF-8."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Json5Error(f"byte {error.start}: not UTF-8") from error


def parse_object(text: str) -> dict[str, Any]:
    """Return the object that the text is."""
    value = parse_json5(text)
    if not isinstance(value, dict):
        raise Json5Error("not an object")
    return value


def write_json(value: Any) -> str:
    """Return the value as JSON on one line, which is JSON5 too; raises SessionInputError for what JSON cannot hold."""
    if _depth(value) > DEEPEST:
        raise SessionInputError(f"nested deeper than {DEEPEST} levels", hint="keep the value flatter, or as text")
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError) as error:
        raise SessionInputError(
            f"cannot be written as JSON: {error}", hint="use text, numbers, lists and dicts"
        ) from error
    text = _LONE_SURROGATES.sub("\ufffd", text)
    for mark, escape in _LINE_SEPARATORS.items():
        text = text.replace(mark, escape)
    return text


def write_name(name: str) -> str:
    """Return the key as it is written: bare where JSON5 allows it."""
    return name if _NAME.fullmatch(name) else write_json(name)


def container_at(text: str, start: int = 0) -> Container:
    """Return the object or array that begins at the first token from `start` on; raises Json5Error if it is broken."""
    tokens = _tokens(text, start)
    opening = next(tokens, None)
    if opening is None or opening[1] not in "{[":
        raise Json5Error("neither an object nor an array")
    items: list[Item] = []
    in_object = opening[1] == "{"
    while True:
        item, closing = _next_item(text, tokens, in_object=in_object)
        if item:
            items.append(item)
        if closing is not None:
            return Container(opening[0], closing, tuple(items))


def _next_item(text: str, tokens: Iterator[tuple[int, str]], *, in_object: bool) -> tuple[Item | None, int | None]:
    """Return the next item, if any, and where the container ends if it ends after it."""
    start, token = _required(tokens)
    if token == ("}" if in_object else "]"):
        return None, start + 1
    name, value_start, value_token = "", start, token
    if in_object:
        name = _name_of(token)
        _, colon = _required(tokens)
        if colon != ":":
            raise _broken(text, start, "no colon after the key")
        value_start, value_token = _required(tokens)
    value_end = _value_end(text, tokens, value_start, value_token)
    position, after = _required(tokens)
    if after == ",":
        return Item(name, start, value_start, value_end, position + 1, has_comma=True), None
    if after != ("}" if in_object else "]"):
        raise _broken(text, position, "a comma is missing")
    return Item(name, start, value_start, value_end, value_end, has_comma=False), position + 1


def _value_end(text: str, tokens: Iterator[tuple[int, str]], start: int, token: str) -> int:
    if token in ("}", "]", ",", ":"):
        raise _broken(text, start, "a value is missing")
    if token not in ("{", "["):
        return start + len(token)
    depth = 1
    while depth:
        position, token = _required(tokens)
        depth += (token in ("{", "[")) - (token in ("}", "]"))
    return position + 1


def _tokens(text: str, start: int) -> Iterator[tuple[int, str]]:
    position = start
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            error = _broken(text, position, "not JSON5")
            if text.startswith("/*", position):  # a comment that never ends was looked for up to the end
                error.position = None
            raise error
        if match.lastgroup != "skip":
            yield position, match[0]
        position = match.end()


def _required(tokens: Iterator[tuple[int, str]]) -> tuple[int, str]:
    token = next(tokens, None)
    if token is None:
        raise Json5Error("the text ends too early")
    return token


def _name_of(token: str) -> str:
    if token[0] in "\"'":
        return str(parse_json5(token))
    if token in ("{", "[", "}", "]", ",", ":"):
        raise Json5Error("a key is missing")
    return token


def _broken(text: str, position: int, what: str) -> Json5Error:
    line = text.count("\n", 0, position) + 1
    error = Json5Error(f"line {line}: {what}")
    error.position = position
    return error


def _depth(value: Any) -> int:
    """Return how deep lists and dicts are nested, without recursion: a hostile value must not end the process."""
    deepest, level = 0, [value]
    while level:
        children: list[Any] = []
        for each in level:
            if isinstance(each, Mapping):
                children.extend(each.values())
            elif isinstance(each, (list, tuple)):
                children.extend(each)
        if deepest > DEEPEST:
            break
        deepest += 1
        level = children
    return deepest


def has_json5() -> bool:
    """Say whether the extra that parses JSON5 is installed."""
    try:
        _pyjson5()
    except ConversationError:
        return False
    return True


def require_json5() -> None:
    """Raise ConversationError when the extra is missing; call it before something is written that could not be read."""
    _pyjson5()


def _pyjson5() -> Any:
    try:
        import pyjson5
    except ImportError as error:
        raise ConversationError(
            f"conversations need pyjson5, which cannot be imported: {error}", hint=INSTALL_HINT
        ) from error
    return pyjson5
