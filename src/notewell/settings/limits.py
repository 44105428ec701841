"""Values brought into their ranges and into agreement with each other, with a note for each one that had to move."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from notewell.settings.model import OPTIONS

_VECTOR, _TEXT = "query.hybrid.vector_weight", "query.hybrid.text_weight"
_TOKENS, _OVERLAP = "chunking.tokens", "chunking.overlap"
_SOURCES, _SESSIONS_ALLOWED = "sources", "experimental.session_memory"

Settled = tuple[dict[str, Any], tuple[str, ...]]  # the values that changed, and why


def within_limits(values: Mapping[str, Any], where: Mapping[str, str]) -> Settled:
    """Return all values as they will be used, and a note on each change. `where` names the place of those given."""
    settled = dict(values)
    notes: list[str] = []
    for rule in (_numbers_in_range, _overlap_below_tokens, _weights_sum_to_one, _sessions_only_if_allowed):
        changed, reasons = rule(settled, where)
        settled |= changed
        notes += reasons
    return settled, tuple(notes)


def _numbers_in_range(values: Mapping[str, Any], where: Mapping[str, str]) -> Settled:
    changed: dict[str, Any] = {}
    notes: list[str] = []
    for key, option in OPTIONS.items():
        if option.low is None:
            continue
        value, number = values[key], float if option.kind == "number" else int
        if value < option.low:
            limit, side = option.low, "below"
        elif option.high is not None and value > option.high:
            limit, side = option.high, "above"
        else:
            continue
        changed[key] = number(limit)
        notes.append(f"{_written(key, values, where)} is {side} {number(limit)}: using {number(limit)}")
    return changed, tuple(notes)


def _overlap_below_tokens(values: Mapping[str, Any], where: Mapping[str, str]) -> Settled:
    tokens = values[_TOKENS]
    if values[_OVERLAP] < tokens:
        return {}, ()
    note = f"{_written(_OVERLAP, values, where)} is not less than {_TOKENS} = {tokens}: using {tokens - 1}"
    return {_OVERLAP: tokens - 1}, (note,)


def _weights_sum_to_one(values: Mapping[str, Any], where: Mapping[str, str]) -> Settled:
    vector, text = values[_VECTOR], values[_TEXT]
    if math.isclose(vector + text, 1):
        return {}, ()
    both = f"{_written(_VECTOR, values, where)} and {_written(_TEXT, values, where)}"
    largest = max(vector, text)
    if largest == 0:
        vector, text = OPTIONS[_VECTOR].default, OPTIONS[_TEXT].default
        return {_VECTOR: vector, _TEXT: text}, (f"{both} leave nothing to weigh: using {vector} and {text}",)
    # Divided by the larger first: the sum of two very large weights would be infinite.
    share = (vector / largest) / (vector / largest + text / largest)
    note = f"{both} do not sum to 1: using {share:.3g} and {1 - share:.3g}"
    return {_VECTOR: share, _TEXT: 1 - share}, (note,)


def _sessions_only_if_allowed(values: Mapping[str, Any], where: Mapping[str, str]) -> Settled:
    if "sessions" not in values[_SOURCES] or values[_SESSIONS_ALLOWED]:
        return {}, ()
    place = f" ({where[_SOURCES]})" if _SOURCES in where else ""
    remaining = tuple(name for name in values[_SOURCES] if name != "sessions") or OPTIONS[_SOURCES].default
    note = (
        f"{_SOURCES}{place} names sessions, but {_SESSIONS_ALLOWED} is false: conversations are not indexed; "
        f"set {_SESSIONS_ALLOWED} = true in your own settings file to allow it"
    )
    return {_SOURCES: remaining}, (note,)


def _written(key: str, values: Mapping[str, Any], where: Mapping[str, str]) -> str:
    return f"{key} = {values[key]}" + (f" ({where[key]})" if key in where else "")
