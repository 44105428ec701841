"""Checks the arguments of public calls against their annotations."""

from __future__ import annotations

import builtins
import collections.abc
import inspect
import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import date
from functools import cache, partial, wraps
from itertools import chain, repeat
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, NamedTuple, ParamSpec, TypeVar, Union, get_args, get_origin, get_type_hints

import notewell.types
from notewell.errors import NotewellError

LONGEST_SHOWN = 80  # characters of a wrong value

_C = TypeVar("_C", bound=type)
_P = ParamSpec("_P")
_R = TypeVar("_R")
_NOUNS: Mapping[object, str] = {
    str: "text",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    date: "a date",
    Path: "a path",
    Collection: "a list of texts",
    Sequence: "a list",
    Iterable: "a list",
    Mapping: "a table",
    Callable: "a function",
}


def checked_calls(error: type[NotewellError], **others: type[NotewellError]) -> Callable[[_C], _C]:
    """Make the public methods of a class raise `error` for arguments that do not match their annotations.

    `others` are the errors of single methods, by name.
    """

    def decorate(owner: _C) -> _C:
        for name, method in list(vars(owner).items()):
            check_call = checked_call(others.get(name, error))
            if name.startswith("_"):
                continue
            if isinstance(method, classmethod):
                setattr(owner, name, classmethod(check_call(method.__func__)))
            elif inspect.isfunction(method):
                setattr(owner, name, check_call(method))
        return owner

    return decorate


def checked_call(error: type[NotewellError]) -> Callable[[Callable[_P, _R]], Callable[_P, _R]]:
    """Let a function do the same."""
    return partial(_checking, error=error)


def check(name: str, value: object, hint: object, error: type[NotewellError]) -> None:
    """Raise `error` if a value does not match a type."""
    if not _fits(value, hint):
        shown = repr(value)
        shown = shown if len(shown) <= LONGEST_SHOWN else f"{shown[:LONGEST_SHOWN]}..."
        raise error(f"{name} must be {_described(hint)}, got {shown}", hint="see the documentation of this call")


def _checking(method: Callable[_P, _R], error: type[NotewellError]) -> Callable[_P, _R]:
    @wraps(method)
    def checking(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        hints = _hints_of(method)
        for (name, hint), value in zip(chain(hints.by_place, repeat(hints.rest)), args, strict=False):
            check(name, value, hint, error)
        for name, value in kwargs.items():
            check(name, value, hints.by_name.get(name, object), error)
        return method(*args, **kwargs)

    return checking


class _Hints(NamedTuple):
    """The types of a function's parameters: positional, `*args` and by name."""

    by_place: Sequence[tuple[str, object]]
    rest: tuple[str, object]
    by_name: Mapping[str, object]


@cache
def _hints_of(method: Callable[..., Any]) -> _Hints:
    hints = get_type_hints(method, localns=_Names(method.__globals__))
    parameters = inspect.signature(method).parameters.values()
    named = {each.name: hints.get(each.name, object) for each in parameters if each.kind is not each.VAR_KEYWORD}
    placed = [each.name for each in parameters if each.kind is each.POSITIONAL_OR_KEYWORD]
    rest = next((each.name for each in parameters if each.kind is each.VAR_POSITIONAL), "")
    return _Hints([(name, named[name]) for name in placed], (rest, named.pop(rest, object)), named)


class _Names(dict[str, object]):
    """Resolves names that a module imports only for type checking; unknown ones allow anything."""

    def __init__(self, known: Mapping[str, object]) -> None:
        self._known = known

    def __missing__(self, name: str) -> object:
        if name in self._known or hasattr(builtins, name):
            raise KeyError(name)
        return getattr(notewell.types, name, None) or getattr(collections.abc, name, object)


def _fits(value: object, hint: object) -> bool:
    kind = get_origin(hint) or hint
    if kind in {Union, UnionType}:
        return any(_fits(value, each) for each in get_args(hint))
    if kind is Literal:
        return isinstance(value, str)  # the call checks the value
    if kind is bool:
        return isinstance(value, int) and value in {0, 1}
    if kind in {Collection, Sequence, Iterable}:
        among = value if isinstance(value, Collection) else ()  # what can be iterated only once is left as it is
        is_list = isinstance(value, kind) and not isinstance(value, str | bytes)
        return is_list and all(_fits(each, of) for each in among for of in get_args(hint))
    if kind in {int, float}:  # NumPy's, too
        return hasattr(type(value), "__index__" if kind is int else "__float__") and not isinstance(value, bool)
    return not isinstance(kind, type) or isinstance(value, os.PathLike if kind is Path else kind)


def _described(hint: object) -> str:
    kinds = get_args(hint) if (get_origin(hint) or hint) in {Union, UnionType} else (hint,)
    nouns: dict[str, None] = {}
    for each in kinds:
        kind = str if get_origin(each) is Literal else get_origin(each) or each
        if kind is not NoneType:
            nouns[_NOUNS.get(kind) or str(getattr(kind, "__name__", kind))] = None
    return " or ".join(nouns)
