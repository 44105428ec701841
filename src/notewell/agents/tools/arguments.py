"""Arguments as a model wrote them and a tool's schema in, checked arguments out; or an error that says what to do."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from notewell.errors import QueryError

if TYPE_CHECKING:
    from notewell.agents.tools.schemas import Schema, ToolSpec

_NOUN = {"string": "text", "integer": "a whole number", "number": "a number"}


def checked_arguments(spec: ToolSpec, arguments: object) -> dict[str, Any]:
    """Return the arguments with every value of its schema's type; null counts as left out."""
    if arguments is None:
        arguments = {}
    if not isinstance(arguments, Mapping):
        raise QueryError(f"{spec.name} takes an object of arguments", hint=_usage(spec))
    properties: Mapping[str, Schema] = spec.parameters["properties"]
    checked: dict[str, Any] = {}
    for name, value in arguments.items():
        if name not in properties:
            close = difflib.get_close_matches(str(name), properties, n=1)
            raise QueryError(
                f"{spec.name} has no parameter {name!r}",
                hint=f"did you mean {close[0]!r}?" if close else _usage(spec),
            )
        if value is not None:
            checked[name] = _checked(spec, name, value, properties[name])
    missing = [name for name in spec.parameters.get("required", ()) if name not in checked]
    if missing:
        raise QueryError(f"{spec.name} needs {', '.join(map(repr, missing))}", hint=_usage(spec))
    return checked


def _checked(spec: ToolSpec, name: str, value: object, schema: Schema) -> object:
    kind = schema["type"]
    if kind == "integer" and isinstance(value, float) and value.is_integer():
        value = int(value)  # JSON of some clients knows one kind of number only
    fits = {
        "string": isinstance(value, str),
        "integer": isinstance(value, int) and not isinstance(value, bool),
        "number": isinstance(value, int | float) and not isinstance(value, bool),
    }[kind]
    if not fits:
        raise QueryError(f"{spec.name}: {name!r} must be {_NOUN[kind]}, got {_shown(value)}", hint=_usage(spec))
    if "enum" in schema and value not in schema["enum"]:
        allowed = " or ".join(map(repr, schema["enum"]))
        raise QueryError(f"{spec.name}: {name!r} must be {allowed}, got {_shown(value)}", hint=f"use {allowed}")
    return value


def _usage(spec: ToolSpec) -> str:
    required = spec.parameters.get("required", ())
    names = [name if name in required else f"{name}?" for name in spec.parameters["properties"]]
    return f"call {spec.name} with {{{', '.join(names)}}}"


def _shown(value: object) -> str:
    shown = repr(value)
    return shown if len(shown) <= 60 else f"{shown[:60]}..."  # enough to see which one was meant
