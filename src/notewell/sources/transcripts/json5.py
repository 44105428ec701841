"""Edits JSON5 files in place, above all those whose last array grows; comments, unknown fields and layout are kept.

pyjson5 parses values. The spans of members and elements are our own, because no library returns them: they give
messages their line numbers and limit an edit to what it changes. Files that we write have this layout:

    {
      ...                      the head: fields that seldom change
      messages: [
        {...},                 one element a line
      ], // end of messages    the end mark
      updatedAt: 1704070800000,
    }                          the foot: small fields that change with every append

An append overwrites the old end mark and foot with the new lines, end mark and foot, and moves nothing. Any other
layout is read too; the first change brings it into this one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from notewell.errors import ConversationError, SessionInputError

INSTALL_HINT = 'run `pip install "notewell[sessions]"`'
DEEPEST = 100  # levels of nesting; pyjson5's default is 32, and Python's encoder fails at about 1,000

_BLANK = re.compile(r"(?:[\s\ufeff]+|//[^\n\r\u2028\u2029]*|/\*.*?\*/)*", re.DOTALL)
_TOKEN = re.compile(
    r"""
    "[^"\\\n\r]*(?:\\(?:\r\n|.)[^"\\\n\r]*)*"
  | '[^'\\\n\r]*(?:\\(?:\r\n|.)[^'\\\n\r]*)*'
  | [{}\[\],:]
  | [^\s"'{}\[\],:/\ufeff]+
    """,
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|(\r\n|.))", re.DOTALL)
_ESCAPED = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "0": "\0"} | dict.fromkeys(
    ("\r\n", "\r", "\n", "\u2028", "\u2029"), ""
)
_NAME = re.compile(r"[A-Za-z_$][\w$]*", re.ASCII)
_LONE_SURROGATES = re.compile("[\ud800-\udfff]")
_LINE_SEPARATORS = {"\u2028": "\\u2028", "\u2029": "\\u2029"}  # valid in JSON5, but some tools split lines there

Tokens = Iterator[tuple[int, str]]  # with their positions


class Json5Error(ValueError):
    """The text is not valid JSON5; the message says where."""

    position: int | None = None  # where reading failed; None: at the end


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
        """Return the last member of this name, the one that counts."""
        return next((item for item in reversed(self.items) if item.name == name), None)


def parse_json5(text: str) -> Any:
    """Return the value of the text; raises Json5Error with the line if it is invalid."""
    decoder = require_json5()
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
    """Return the value as JSON on one line; raises SessionInputError for values that JSON cannot represent."""
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
    """Return the key, without quotes if JSON5 allows it."""
    return name if _NAME.fullmatch(name) else write_json(name)


def container_at(text: str, start: int = 0) -> Container:
    """Return the object or array that begins at the first token from `start` on; raises Json5Error if it is broken."""
    tokens = tokens_of(text, start)
    return read_container(text, tokens, *next(tokens))


def read_container(
    text: str, tokens: Tokens, start: int, opening: str, value_end: Callable[[int, str], int] | None = None
) -> Container:
    """Return the object or array that begins with the token `opening`.

    `value_end` reads the rest of a value that begins with the given position and token, and returns its end; by default
    values are skipped.
    """
    if opening not in ("{", "["):
        raise error_at(text, start, "neither an object nor an array")
    items: list[Item] = []
    while True:
        item, closing = _next_item(text, tokens, in_object=opening == "{", value_end=value_end)
        if item:
            items.append(item)
        if closing is not None:
            return Container(start, closing, tuple(items))


def _next_item(
    text: str, tokens: Tokens, *, in_object: bool, value_end: Callable[[int, str], int] | None
) -> tuple[Item | None, int | None]:
    """Return the next item, if any, and where the container ends if it ends after it."""
    start, token = next(tokens)
    if token == ("}" if in_object else "]"):
        return None, start + 1
    name, value_start, value_token = "", start, token
    if in_object:
        if token in ("{", "[", "}", "]", ",", ":"):
            raise error_at(text, start, "a key is missing")
        name = unquoted(text, start, token) if token[0] in "\"'" else token
        if next(tokens)[1] != ":":
            raise error_at(text, start, "no colon after the key")
        value_start, value_token = next(tokens)
    if value_token in ("}", "]", ",", ":"):
        raise error_at(text, value_start, "a value is missing")
    end = value_end(value_start, value_token) if value_end else _skip_value(tokens, value_start, value_token)
    position, after = next(tokens)
    if after == ",":
        return Item(name, start, value_start, end, position + 1, has_comma=True), None
    if after != ("}" if in_object else "]"):
        raise error_at(text, position, "a comma is missing")
    return Item(name, start, value_start, end, end, has_comma=False), position + 1


def _skip_value(tokens: Tokens, start: int, token: str) -> int:
    if token not in ("{", "["):
        return start + len(token)
    position, depth = start, 1
    while depth:
        position, token = next(tokens)
        depth += (token in ("{", "[")) - (token in ("}", "]"))
    return position + 1


def tokens_of(text: str, start: int) -> Tokens:
    """Yield each token with where it begins; raises Json5Error at the end, which no caller expects."""
    position = start
    while (position := after_blanks(text, position)) < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            error = error_at(text, position, "not JSON5")
            if text.startswith("/*", position):  # an unclosed comment extends to the end
                error.position = None
            raise error
        yield position, match[0]
        position = match.end()
    error = error_at(text, len(text), "the text ends too early")
    error.position = None
    raise error


def after_blanks(text: str, position: int) -> int:
    """Return the position after blanks and comments."""
    found = _BLANK.match(text, position)
    assert found, "it matches nothing, too"
    return found.end()


def unquoted(text: str, start: int, token: str) -> str:
    """Return the value of a quoted string that begins at `start` in the text."""

    def unescaped(found: re.Match[str]) -> str:
        code = found[1] or found[2]
        if not code and found[3] in {"u", "x"}:
            raise error_at(text, start, "invalid escape")
        return chr(int(code, 16)) if code else _ESCAPED.get(found[3], found[3])

    said = _ESCAPE.sub(unescaped, token[1:-1])
    return said.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def error_at(text: str, position: int, what: str) -> Json5Error:
    """Return an error with the line of a position in the text."""
    error = Json5Error(f"line {text.count(chr(10), 0, position) + 1}: {what}")
    error.position = position
    return error


def _depth(value: Any) -> int:
    """Return how deep lists and dicts are nested, without recursion, since values may be hostile."""
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
    """Return whether pyjson5 is installed."""
    try:
        require_json5()
    except ConversationError:
        return False
    return True


def require_json5() -> Any:
    """Return the parser; raises ConversationError if it is not installed."""
    try:
        import pyjson5
    except ImportError as error:
        raise ConversationError(
            f"conversations need pyjson5, which cannot be imported: {error}", hint=INSTALL_HINT
        ) from error
    return pyjson5


# --- files whose last array grows --------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Parts:
    """A text in parts: up to the end mark, the foot after it, and the foot's fields."""

    body: str  # the head and the elements; ends with a line break
    foot: str
    values: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Layout:
    """Edits files whose last array grows: the name of that array, and the comment on top of a new file."""

    array: str  # "messages"
    opening_comment: str

    @property
    def opening(self) -> str:
        """The line before the first element."""
        return f"  {self.array}: [\n"

    @property
    def end_mark(self) -> str:
        """The line after the last element; it is unique, since strings that we write contain no line breaks."""
        return f"  ], // end of {self.array}\n"

    @property
    def end_field(self) -> str:
        """The field of the foot with the offset of the end mark in bytes; a manual edit makes it wrong."""
        return f"{self.array}End"

    def new_text(self, head: Mapping[str, Any], elements: Sequence[Mapping[str, Any]], foot: Mapping[str, Any]) -> str:
        """Return the text of a new file."""
        lines = ["{"]
        lines += [f"  // {line}" for line in self.opening_comment.split("\n")]
        lines += [f"  {write_name(name)}: {write_json(value)}," for name, value in head.items() if value is not None]
        body = "\n".join(lines) + "\n" + self.opening + element_lines(elements)
        return self.join(body, "}\n", foot)

    def join(self, body: str, foot: str, changes: Mapping[str, Any]) -> str:
        """Return the whole text, after setting fields of the foot."""
        return body + self.end_of(len(body.encode()), foot, changes)

    def end_of(self, end_byte: int, foot: str, changes: Mapping[str, Any]) -> str:
        """Return the end mark and the foot for a body of so many bytes."""
        foot = set_members("{\n" + foot, 0, {**changes, self.end_field: end_byte})
        return self.end_mark + foot.removeprefix("{\n")

    def parts_of_end(self, end: str) -> Parts | None:
        """Return the end of a file in parts; None if it is not in our layout."""
        mark = end.rfind("\n" + self.end_mark)
        if mark < 0:
            return None
        body, foot = end[: mark + 1], end[mark + 1 + len(self.end_mark) :]
        if body.rstrip().endswith("}"):  # the last comma was removed: nothing may follow
            return None
        try:
            values = parse_object("{" + foot)
        except Json5Error:
            return None
        return Parts(body, foot, values)

    def set_head(self, text: str, changes: Mapping[str, Any]) -> str:
        """Return the text after setting fields before the array, which is not read in our own layout."""
        opening = f"\n{self.opening}"
        cut = text.find(opening)
        end = self.parts_of_end(text)
        closing = "  ]\n}"
        if (
            cut < 0
            or end is None
            or not end.values.keys().isdisjoint(changes)
            or not _is_object(text[:cut] + opening + closing)
        ):
            return set_members(text, 0, changes, before=self.array)
        head = set_members(text[:cut] + opening + closing, 0, changes, before=self.array)
        return head.removesuffix(closing) + text[cut + len(opening) :]

    def arrange(self, text: str) -> Parts:
        """Return the parts of any JSON5 object in our layout, with comments and unknown fields.

        Raises Json5Error if the text is not an object, or the array is not an array.
        """
        text = text.removeprefix("\ufeff").replace("\r\n", "\n")
        values = parse_object(text)  # the scanner of spans is more lenient than a parser
        parts = self.parts_of_end(text)
        if parts and _is_object(parts.body + "]}", {self.array: values.get(self.array)}):
            return parts
        whole = container_at(text)
        item = whole.item(self.array)
        if item is None:
            text = set_members(text, whole.start, {self.array: []})
            whole = container_at(text)
            item = whole.item(self.array)
            assert item is not None
        if not isinstance(values.get(self.array, []), list):
            raise Json5Error(f"{self.array} is not a list")
        array = container_at(text, item.value_start)
        inside = _with_last_comma(text, array).strip("\n ")
        body = text[: array.start + 1] + "\n" + (f"    {inside}\n" if inside else "")
        foot = text[array.end : item.value_end] + text[item.end :].lstrip(" \t")
        foot = foot.removeprefix(f"// end of {self.array}").lstrip(" \t").removeprefix("\n")
        return Parts(body, foot, parse_object("{\n" + foot))

    def elements_of(self, text: str) -> list[tuple[int, int]]:
        """Return the span of each element in the text, including its comma."""
        item = container_at(text).item(self.array)
        if item is None:
            return []
        return [(each.start, each.end) for each in container_at(text, item.value_start).items]

    def without_elements(self, text: str, first: int, last: int) -> str:
        """Return the text without elements `first` (0-based) to `last` (exclusive) and the comments between."""
        spans = self.elements_of(text)
        if first >= last or first >= len(spans):
            return text
        start = _line_start(text, spans[first][0])
        end = _line_start(text, spans[last][0]) if last < len(spans) else _after_line(text, spans[-1][1])
        return text[:start] + text[max(end, spans[min(last, len(spans)) - 1][1]) :]

    def with_element(self, text: str, position: int, element: Mapping[str, Any] | None) -> str:
        """Return the text with one element replaced, the rest of its line kept; None removes it."""
        if element is None:
            return self.without_elements(text, position, position + 1)
        start, end = self.elements_of(text)[position]
        comma = "," if text[end - 1] == "," else ""
        return text[:start] + write_json(element) + comma + text[end:]

    def with_new_elements(self, text: str, elements: Sequence[Mapping[str, Any]]) -> str:
        """Return the text in our layout, with elements appended."""
        parts = self.parts_of_end(text)
        if parts is None or parts.values.get(self.end_field) != len(parts.body.encode()):  # another layout, or edited
            parts = self.arrange(text)
        return self.join(parts.body + element_lines(elements), parts.foot, {})


def element_lines(elements: Sequence[Mapping[str, Any]]) -> str:
    """Return the elements as JSON, one a line."""
    return "".join(f"    {write_json(element)},\n" for element in elements)


def with_appended(text: str, name: str, value: Mapping[str, Any], *, before: str) -> str:
    """Return the text with a value appended to the array `name`, created before the member `before` if needed."""
    item = container_at(text).item(name)
    if item is None or text[item.value_start] != "[":
        text = set_members(text, 0, {name: []}, before=before)
        item = container_at(text).item(name)
        assert item is not None
    array = container_at(text, item.value_start)
    inside = _with_last_comma(text, array).rstrip()
    return f"{text[: array.start + 1]}{inside}\n    {write_json(value)},\n  {text[array.end - 1 :]}"


def _is_object(text: str, holding: Mapping[str, Any] | None = None) -> bool:
    try:
        values = parse_object(text)
    except Json5Error:
        return False
    return all(values.get(name) == value for name, value in (holding or {}).items())


def _with_last_comma(text: str, array: Container) -> str:
    start, end = array.start + 1, array.end - 1
    if array.items and not array.items[-1].has_comma:
        cut = array.items[-1].value_end
        return text[start:cut] + "," + text[cut:end].rstrip()
    return text[start:end].rstrip()


def _line_start(text: str, position: int) -> int:
    start = text.rfind("\n", 0, position) + 1
    return start if not text[start:position].strip() else position


def _after_line(text: str, position: int) -> int:
    end = text.find("\n", position)
    return end + 1 if end >= 0 and not text[position:end].strip() else position


# --- members -----------------------------------------------------------------------------------


def set_members(text: str, start: int, changes: Mapping[str, Any], *, before: str = "") -> str:
    """Return the text with members of the object at `start` set, or removed if the value is None.

    Existing members are replaced in place; new ones go before the member `before`, else to the end.
    """
    for name, value in changes.items():
        found = container_at(text, start)
        item = found.item(name)
        if item and value is None:
            text = _without(text, item)
        elif item:
            text = text[: item.value_start] + write_json(value) + text[item.value_end :]
        elif value is not None:
            text = _inserted(text, found, f"{write_name(name)}: {write_json(value)}", before=before)
    return text


def _inserted(text: str, found: Container, member: str, *, before: str) -> str:
    anchor = found.item(before) if before else None
    if anchor:
        return f"{text[: anchor.start]}{member},\n  {text[anchor.start :]}"
    close = found.end - 1
    if found.items and not found.items[-1].has_comma:
        cut = found.items[-1].value_end
        text, close = f"{text[:cut]},{text[cut:]}", close + 1
    body = text[:close].rstrip(" \t")
    gap = "" if body.endswith("\n") else "\n"
    return f"{body}{gap}  {member},\n{text[close:]}"


def _without(text: str, item: Item) -> str:
    line_start = text.rfind("\n", 0, item.start) + 1
    line_end = text.find("\n", item.end)
    alone = not text[line_start : item.start].strip() and line_end >= 0 and not text[item.end : line_end].strip()
    return text[:line_start] + text[line_end + 1 :] if alone else text[: item.start] + text[item.end :].lstrip(" \t")
