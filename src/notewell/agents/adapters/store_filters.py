"""A value and a filter, or a namespace and a pattern in, whether they match out; as LangGraph's stores do."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from notewell.errors import QueryError

_ORDER: dict[str, Callable[[float, float], bool]] = {
    "$gt": operator.gt,
    "$gte": operator.ge,
    "$lt": operator.lt,
    "$lte": operator.le,
}


def matches_filter(value: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    """Say whether every field of the filter fits the value."""
    return all(_fits(value.get(field), condition) for field, condition in wanted.items())


def _fits(value: object, wanted: object) -> bool:
    if isinstance(wanted, Mapping):
        if any(str(name).startswith("$") for name in wanted):
            return all(_compares(value, str(name), other) for name, other in wanted.items())
        return isinstance(value, Mapping) and all(_fits(value.get(name), inner) for name, inner in wanted.items())
    if isinstance(wanted, list | tuple):
        return (
            isinstance(value, list | tuple)
            and len(value) == len(wanted)
            and all(_fits(one, other) for one, other in zip(value, wanted, strict=True))
        )
    return value == wanted


def _compares(value: object, name: str, other: object) -> bool:
    if name == "$eq":
        return value == other
    if name == "$ne":
        return value != other
    if name not in _ORDER:
        raise QueryError(f"unknown operator of a filter: {name}", hint=f"use $eq, $ne, {', '.join(_ORDER)}")
    try:
        return _ORDER[name](float(value), float(other))  # type: ignore[arg-type]  # what is no number does not match
    except (TypeError, ValueError):
        return False


def matches_namespace(namespace: Sequence[str], kind: str, pattern: Sequence[str]) -> bool:
    """Say whether a namespace begins (`prefix`) or ends (`suffix`) like the pattern, in which `*` is any part."""
    if len(namespace) < len(pattern):
        return False
    if kind not in {"prefix", "suffix"}:
        raise QueryError(f"unknown way to match a namespace: {kind}", hint="use prefix or suffix")
    part = namespace[: len(pattern)] if kind == "prefix" else namespace[len(namespace) - len(pattern) :]
    return all(wanted in ("*", own) for own, wanted in zip(part, pattern, strict=True))
