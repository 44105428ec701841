"""Edits JSON5 files whose last array grows, and keeps comments, unknown fields and layout.

    {
      ...                      the head: fields that seldom change
      messages: [
        {...},                 one element a line
      ], // end of messages    the end mark
      updatedAt: 1704070800000,
    }                          the foot: small fields that change with every append

An append writes the new lines, the end mark and the foot over the old end mark and foot, and moves nothing. Any other
layout of the same JSON5 is read too; the first change brings it into this one and keeps everything else as it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from notewell.sources.transcripts.json5 import (
    Container,
    Item,
    Json5Error,
    Layout,
    container_at,
    parse_object,
    write_json,
    write_name,
)


@dataclass(frozen=True, slots=True)
class Parts:
    """A text in three: up to the end mark, the foot after it, and the fields of the foot."""

    body: str  # the head and the elements; ends with a line break
    foot: str
    values: dict[str, Any]


def new_text(
    layout: Layout, head: Mapping[str, Any], elements: Sequence[Mapping[str, Any]], foot: Mapping[str, Any]
) -> str:
    """Return the text of a new file."""
    lines = ["{"]
    lines += [f"  // {line}" for line in layout.opening_comment.split("\n")]
    lines += [f"  {write_name(name)}: {write_json(value)}," for name, value in head.items() if value is not None]
    body = "\n".join(lines) + "\n" + layout.opening + element_lines(elements)
    return join(layout, body, "}\n", foot)


def element_lines(elements: Sequence[Mapping[str, Any]]) -> str:
    """Return the elements as they are written: one a line."""
    return "".join(f"    {write_json(element)},\n" for element in elements)


def join(layout: Layout, body: str, foot: str, changes: Mapping[str, Any]) -> str:
    """Return the whole text, with fields of the foot set."""
    return body + end_of(layout, len(body.encode()), foot, changes)


def end_of(layout: Layout, end_byte: int, foot: str, changes: Mapping[str, Any]) -> str:
    """Return the end mark and the foot for a body of so many bytes."""
    foot = set_members("{\n" + foot, 0, {**changes, layout.end_field: end_byte})
    return layout.end_mark + foot.removeprefix("{\n")


def parts_of_end(layout: Layout, end: str) -> Parts | None:
    """Return the last part of a file in its parts, or None when it is not in our layout and must be read whole."""
    mark = end.rfind("\n" + layout.end_mark)
    if mark < 0:
        return None
    body, foot = end[: mark + 1], end[mark + 1 + len(layout.end_mark) :]
    if body.rstrip().endswith("}"):  # somebody took the comma away: nothing may follow
        return None
    try:
        values = parse_object("{" + foot)
    except Json5Error:
        return None
    return Parts(body, foot, values)


def set_head(layout: Layout, text: str, changes: Mapping[str, Any]) -> str:
    """Return the text with fields set that stand before the array; in our own layout the array is not looked at."""
    opening = f"\n{layout.opening}"
    cut = text.find(opening)
    end = parts_of_end(layout, text)
    closing = "  ]\n}"
    if (
        cut < 0
        or end is None
        or not end.values.keys().isdisjoint(changes)
        or not _is_object(text[:cut] + opening + closing)
    ):
        return set_members(text, 0, changes, before=layout.array)
    head = set_members(text[:cut] + opening + closing, 0, changes, before=layout.array)
    return head.removesuffix(closing) + text[cut + len(opening) :]


def arrange(layout: Layout, text: str) -> Parts:
    """Return the parts of any JSON5 object, brought into our layout; comments and unknown fields are kept.

    Raises Json5Error where the text is no object, or the array is something else.
    """
    text = text.removeprefix("\ufeff").replace("\r\n", "\n")
    values = parse_object(text)  # the scanner of spans is more lenient than a parser
    parts = parts_of_end(layout, text)
    if parts and _is_object(parts.body + "]}", {layout.array: values.get(layout.array)}):
        return parts
    whole = container_at(text)
    item = whole.item(layout.array)
    if item is None:
        text = set_members(text, whole.start, {layout.array: []})
        whole = container_at(text)
        item = whole.item(layout.array)
        assert item is not None
    if not isinstance(values.get(layout.array, []), list):
        raise Json5Error(f"{layout.array} is not a list")
    array = container_at(text, item.value_start)
    inside = _with_last_comma(text, array).strip("\n ")
    body = text[: array.start + 1] + "\n" + (f"    {inside}\n" if inside else "")
    foot = text[array.end : item.value_end] + text[item.end if item.has_comma else item.value_end :].lstrip(" \t")
    foot = foot.removeprefix(f"// end of {layout.array}").lstrip(" \t").removeprefix("\n")
    return Parts(body, foot, parse_object("{\n" + foot))


def elements_of(layout: Layout, text: str) -> list[tuple[int, int]]:
    """Return where each element stands in the text, from its own start to the end of its comma."""
    item = container_at(text).item(layout.array)
    if item is None:
        return []
    return [(each.start, each.end) for each in container_at(text, item.value_start).items]


def without_elements(layout: Layout, text: str, first: int, last: int) -> str:
    """Return the text without the elements `first` up to but not including `last` (0-based), nor comments between."""
    spans = elements_of(layout, text)
    if first >= last or first >= len(spans):
        return text
    start = _line_start(text, spans[first][0])
    end = _line_start(text, spans[last][0]) if last < len(spans) else _after_line(text, spans[-1][1])
    return text[:start] + text[max(end, spans[min(last, len(spans)) - 1][1]) :]


def with_element(layout: Layout, text: str, position: int, element: Mapping[str, Any]) -> str:
    """Return the text with one element replaced; the rest of its line stays."""
    start, end = elements_of(layout, text)[position]
    comma = "," if text[end - 1] == "," else ""
    return text[:start] + write_json(element) + comma + text[end:]


def with_new_elements(layout: Layout, text: str, elements: Sequence[Mapping[str, Any]]) -> str:
    """Return the text, in our layout, with elements added after the last one."""
    parts = parts_of_end(layout, text)
    if parts is None or parts.values.get(layout.end_field) != len(parts.body.encode()):  # written or edited by others
        parts = arrange(layout, text)
    return join(layout, parts.body + element_lines(elements), parts.foot, {})


def with_appended(text: str, name: str, value: Mapping[str, Any], *, before: str) -> str:
    """Return the text with a value added to the array `name`, which is made before the member `before` if need be."""
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
    """Return the text with members of the object at `start` set, or removed where the value is None.

    Values that are there are replaced where they stand; new ones go before the member `before`, else to the end.
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
