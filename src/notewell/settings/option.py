"""What is known about one setting besides its value: kind, range, choices, meaning, and who may set it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

Kind = Literal["boolean", "integer", "number", "text", "list", "table", "path", "paths"]

# What a workspace file may do with a setting: nothing, everything, only these values, or only paths inside itself.
WorkspaceRule = Literal["no", "yes", "inside"] | tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Option:
    """One setting, described as data: checks, error messages and the reference page are all made from it."""

    default: object
    kind: Kind
    meaning: str
    low: float | None = None  # numbers below are raised to it
    high: float | None = None  # numbers above are lowered to it
    choices: tuple[str, ...] = ()
    pattern: str = ""  # a regular expression the whole text must match
    form: str = ""  # the pattern in words
    workspace: WorkspaceRule = "no"
    secret: bool = False
    placeholders: tuple[str, ...] = ()  # names a path may hold in braces

    @property
    def expected(self) -> str:
        """What is allowed, as the end of "must be ..."."""
        if self.form:
            return self.form
        if self.kind == "list":
            return f"a list with at least one of {', '.join(self.choices)}"
        if self.choices:
            return f"one of {', '.join(self.choices)}"
        return f"{_NOUN[self.kind]}{self.range_text}"

    @property
    def range_text(self) -> str:
        """The range of a number with a leading blank, such as " from 0 to 1"; empty when there is none."""
        if self.low is None:
            return ""
        return f" of {self.low:g} or more" if self.high is None else f" from {self.low:g} to {self.high:g}"


_NOUN: Mapping[Kind, str] = {
    "boolean": "true or false",
    "integer": "a whole number",
    "number": "a number",
    "text": "text in quotes",
    "table": "a table of names and texts",
    "path": "a path",
    "paths": "a list of paths",
}

_KIND_OF_DEFAULT: Mapping[type, Kind] = {bool: "boolean", int: "integer", float: "number", str: "text"}


def option(default: object, meaning: str, **facts: Any) -> Any:
    """Return a dataclass field that carries its own description; the kind follows from the default if not given.

    The result is typed `Any` so that a type checker takes the annotation beside it as the truth.
    """
    kind = facts.pop("kind", None) or _KIND_OF_DEFAULT[type(default)]
    metadata = {"option": Option(default=default, kind=kind, meaning=meaning, **facts)}
    if isinstance(default, dict):  # a mapping has no hash; settings without it still tell themselves apart by equality
        return field(default_factory=dict, hash=False, repr=False, metadata=metadata)
    return field(default=default, repr=not facts.get("secret", False), metadata=metadata)


def as_plain(value: object) -> object:
    """Return the value as JSON and TOML know it: lists for tuples, texts for paths."""
    if isinstance(value, tuple):
        return [as_plain(item) for item in value]
    if isinstance(value, Mapping):
        return dict(value)
    return str(value) if isinstance(value, Path) else value
