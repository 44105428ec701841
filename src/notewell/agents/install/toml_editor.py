"""Edits one table of a TOML file, and keeps the rest of the text as it is."""

from __future__ import annotations

import json
import re
from typing import Any


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


_HEADER = re.compile(r"^[ \t]*\[{1,2}[^\n]*$", re.MULTILINE)
_COMMENTS = re.compile(r"(?:^[ \t]*(?:#[^\n]*)?\r?\n)*\Z", re.MULTILINE)


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
