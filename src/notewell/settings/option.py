"""Describes settings as data: kind, range, choices, meaning, permissions and checks."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any, Literal, TypeVar

from notewell.settings.masking import MASK, as_plain, masked_headers, masked_text

_Group = TypeVar("_Group")

Kind = Literal["boolean", "integer", "number", "text", "list", "table", "path", "paths"]

# May a workspace file set it: not at all, freely, only to these values, or only to paths inside the workspace?
WorkspaceRule = Literal["no", "yes", "inside"] | tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Option:
    """One setting; checks, error messages and the reference page are made from it."""

    default: object
    kind: Kind
    meaning: str
    low: float | None = None  # numbers below are raised to it
    high: float | None = None  # numbers above are lowered to it
    choices: tuple[str, ...] = ()
    pattern: str = ""  # a regular expression for the whole text
    form: str = ""  # the pattern in words
    workspace: WorkspaceRule = "no"
    secret: bool = False
    placeholders: tuple[str, ...] = ()  # names that a path may contain in braces

    @property
    def expected(self) -> str:
        """The allowed values, to complete "must be ..."."""
        if self.form:
            return self.form
        if self.kind == "list":
            return f"a list with at least one of {', '.join(self.choices)}"
        if self.choices:
            return f"one of {', '.join(self.choices)}"
        return f"{_NOUNS[self.kind]}{self.range_text}"

    @property
    def range_text(self) -> str:
        """The range of a number with a leading space, such as " from 0 to 1"; empty if there is none."""
        if self.low is None:
            return ""
        return f" of {self.low:g} or more" if self.high is None else f" from {self.low:g} to {self.high:g}"

    def checked(self, value: object, *, is_text: bool = False) -> Any:
        """Return the value with the setting's type; raises ValueError, TypeError or OverflowError.

        `is_text` parses strings first, for variables and flags. Ranges are not checked here.
        """
        if is_text and isinstance(value, str):
            value = _PARSERS[self.kind](value)
        result = _CHECKS[self.kind](value)
        if isinstance(result, str):
            names = re.findall(r"\{([^{}]*)\}", result) if self.placeholders else ()
            if (
                "\0" in result
                or (self.choices and result not in self.choices)
                or (self.pattern and not re.fullmatch(self.pattern, result))
                or not set(names) <= set(self.placeholders)
            ):
                raise ValueError(result)
        elif isinstance(result, tuple) and self.choices and not (result and set(result) <= set(self.choices)):
            raise ValueError(result)
        return result

    def public(self, value: object) -> object:
        """Return a value of this setting as plain data, with secrets masked."""
        if isinstance(value, Mapping):
            return masked_headers(value)
        if self.secret and value:
            return MASK
        plain = as_plain(value)
        return masked_text(plain) if isinstance(plain, str) and self.kind == "text" else plain


def walk(group: Any, prefix: str = "") -> Iterator[tuple[str, Option, Any]]:
    """Yield the key path, the description and the value of every setting of a group and of the groups in it."""
    for each in fields(group):
        value = getattr(group, each.name)
        if is_dataclass(value):
            yield from walk(value, f"{prefix}{each.name}.")
        else:
            yield prefix + each.name, each.metadata["option"], value


def groups_of(group: Any, prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yield the key path and the meaning of a group and of the groups in it."""
    yield prefix.rstrip("."), type(group).__doc__ or ""
    for each in fields(group):
        if is_dataclass(each.default):
            yield from groups_of(each.default, f"{prefix}{each.name}.")


def build(group: _Group, values: Mapping[str, object], prefix: str = "") -> _Group:
    """Return a group like this one with other values, one for each key path."""
    made = {
        each.name: build(each.default, values, f"{prefix}{each.name}.")
        if is_dataclass(each.default)
        else values[prefix + each.name]
        for each in fields(group)  # type: ignore[arg-type]  # of a dataclass
    }
    return type(group)(**made)


def toml_value(value: object) -> str:
    """Return a value as TOML, on one line."""
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{toml_value(str(name))} = {toml_value(text)}' for name, text in value.items())}}}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(toml_value, value))}]"
    # Numbers, booleans and most strings are the same in JSON and TOML.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


_KIND_OF_DEFAULT: Mapping[type, Kind] = {bool: "boolean", int: "integer", float: "number", str: "text"}


def option(default: object, meaning: str, **facts: Any) -> Any:
    """Return a dataclass field with its description; the kind is that of the default, unless given.

    Typed `Any`, so that type checkers use the field's annotation.
    """
    kind = facts.pop("kind", None) or _KIND_OF_DEFAULT[type(default)]
    metadata = {"option": Option(default=default, kind=kind, meaning=meaning, **facts)}
    if isinstance(default, dict):  # a mapping is not hashable; equality still compares it
        return field(default_factory=dict, hash=False, repr=False, metadata=metadata)
    return field(default=default, repr=not facts.get("secret", False), metadata=metadata)


def _boolean(value: object) -> bool:
    if not isinstance(value, bool):
        raise TypeError
    return value


def _integer(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError
    if value.bit_length() > 63:  # the limit of SQLite's integers
        raise OverflowError
    return value


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError
    number = float(value)
    if not math.isfinite(number):
        raise ValueError(value)
    return number


def _text(value: object) -> str:
    text = _string(value)
    text.encode()  # raises UnicodeEncodeError, a ValueError, for bytes of a variable that are no text
    return text


def _path(value: object) -> str:
    return _string(os.fspath(value) if isinstance(value, os.PathLike) else value)


def _string(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _paths(value: object) -> tuple[str, ...]:
    paths = _list(value, item=_path)
    if any(not path.strip() or "\0" in path for path in paths):
        raise ValueError(value)
    return paths


def _list(value: object, *, item: Callable[[object], str] = _text) -> tuple[str, ...]:
    if not isinstance(value, list | tuple):
        raise TypeError
    return tuple(dict.fromkeys(map(item, value)))


def _table(value: object) -> dict[str, str]:
    if not isinstance(value, Mapping):
        raise TypeError
    return {_text(name): _text(text) for name, text in value.items()}


def _parse_boolean(text: str) -> bool:
    word = text.strip().lower()
    if word not in _BOOLEANS:
        raise ValueError(text)
    return _BOOLEANS[word]


def _parse_list(text: str) -> object:
    if text.lstrip().startswith("["):
        return json.loads(text)
    return [item.strip() for item in text.split(",") if item.strip()]


_BOOLEANS = {"true": True, "1": True, "yes": True, "on": True, "false": False, "0": False, "no": False, "off": False}

_NOUNS: Mapping[Kind, str] = {
    "boolean": "true or false",
    "integer": "a whole number",
    "number": "a number",
    "text": "text in quotes",
    "table": "a table of names and texts",
    "path": "a path",
    "paths": "a list of paths",
}
_CHECKS: Mapping[Kind, Callable[[object], object]] = {
    "boolean": _boolean,
    "integer": _integer,
    "number": _number,
    "text": _text,
    "list": _list,
    "table": _table,
    "path": _path,
    "paths": _paths,
}
_PARSERS: Mapping[Kind, Callable[[str], object]] = {
    "boolean": _parse_boolean,
    "integer": int,
    "number": float,
    "text": str,
    "list": _parse_list,
    "table": json.loads,
    "path": str,
    "paths": _parse_list,
}
