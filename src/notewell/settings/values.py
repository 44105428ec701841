"""One value as somebody wrote it comes in; what `Settings` holds goes out, or a `SettingsError` that says where."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from notewell.errors import SettingsError
from notewell.settings.masking import shown
from notewell.settings.model import GROUPS, OPTIONS
from notewell.settings.option import Kind, Option

_WORDS = {"true": True, "1": True, "yes": True, "on": True, "false": False, "0": False, "no": False, "off": False}


@dataclass(frozen=True, slots=True)
class Given:
    """A value for one setting, and where it came from."""

    key: str
    value: object
    origin: str  # for people who ask where a value is from: "user file /home/ana/.config/notewell/config.toml"
    where: str  # for error messages: the file with the line, the variable, or the flag
    is_text: bool = False  # written where everything is text: a variable, or a flag that was not parsed


def checked(given: Given) -> Any:
    """Return the value with the type the setting has; ranges are not looked at here."""
    option = OPTIONS[given.key]
    try:
        value = _FROM_TEXT[option.kind](given.value) if given.is_text and isinstance(given.value, str) else given.value
        result = _CHECKS[option.kind](value)
        _check_content(option, result)
    except (ValueError, TypeError, OverflowError):
        raise SettingsError(
            f"{given.where}: {given.key} must be {option.expected}, got {shown(given.value, option)}",
            hint=_hint(option, given.value),
        ) from None  # the cause may quote a secret
    return result


def unknown_key(where: str, key: str) -> SettingsError:
    """Return the error for a key path that names no setting, with the one that was probably meant."""
    close = _closest(key)
    return SettingsError(
        f"{where}: unknown setting {key}",
        hint=f"did you mean {close}?" if close else "docs/configuration.md lists every setting",
    )


def variable_name(key: str) -> str:
    """Return the environment variable that sets this key: NOTEWELL_QUERY__MAX_RESULTS for query.max_results."""
    return "NOTEWELL_" + key.upper().replace(".", "__")


def close_match(word: str, words: list[str]) -> str | None:
    """Return the one of `words` that was probably meant."""
    import difflib  # 10 ms, needed only for errors

    return next(iter(difflib.get_close_matches(word, words, n=1, cutoff=0.7)), None)


def _closest(key: str) -> str | None:
    snake = re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", key).lower().replace("-", "_")
    names = [*OPTIONS, *(group for group in GROUPS if group)]
    if snake in names:
        return snake
    group, _, leaf = snake.rpartition(".")
    beside = {name.rpartition(".")[2]: name for name in OPTIONS if group and name.rpartition(".")[0] == group}
    if near := close_match(leaf, list(beside)):  # a slip inside a group that is there
        return beside[near]
    same_leaf = [name for name in OPTIONS if name.rpartition(".")[2] == leaf]
    return same_leaf[0] if len(same_leaf) == 1 else close_match(snake, names)


def _hint(option: Option, value: object) -> str:
    if option.choices and isinstance(value, str) and (close := close_match(value.lower(), list(option.choices))):
        return f"did you mean {close}?"
    return (
        f"correct it, or remove it to get the default, {shown(option.default) if option.default else 'which is empty'}"
    )


def _check_content(option: Option, value: object) -> None:
    if isinstance(value, str):
        if option.choices and value not in option.choices:
            raise ValueError(value)
        if option.pattern and not re.fullmatch(option.pattern, value):
            raise ValueError(value)
        names = re.findall(r"\{([^{}]*)\}", value) if option.placeholders else []
        if "\0" in value or any(name not in option.placeholders for name in names):
            raise ValueError(value)
    if option.kind == "list":
        assert isinstance(value, tuple)
        if not value or not set(value) <= set(option.choices):
            raise ValueError(value)


def _boolean(value: object) -> bool:
    if not isinstance(value, bool):
        raise TypeError
    return value


def _integer(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError
    if value.bit_length() > 63:  # SQLite's integers end there
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
    if not isinstance(value, str):
        raise TypeError
    return value


def _path(value: object) -> str:
    return _text(os.fspath(value) if isinstance(value, os.PathLike) else value)


def _paths(value: object) -> tuple[str, ...]:
    if not isinstance(value, list | tuple):
        raise TypeError
    paths = tuple(dict.fromkeys(_path(item) for item in value))
    if any(not path.strip() or "\0" in path for path in paths):
        raise ValueError(value)
    return paths


def _list(value: object) -> tuple[str, ...]:
    if not isinstance(value, list | tuple):
        raise TypeError
    return tuple(dict.fromkeys(_text(item) for item in value))


def _table(value: object) -> dict[str, str]:
    if not isinstance(value, Mapping):
        raise TypeError
    return {_text(name): _text(text) for name, text in value.items()}


def _boolean_word(text: str) -> bool:
    try:
        return _WORDS[text.strip().lower()]
    except KeyError:
        raise ValueError(text) from None


def _json_or_commas(text: str) -> object:
    if text.lstrip().startswith("["):
        return _json(text)
    return [item.strip() for item in text.split(",") if item.strip()]


def _json(text: str) -> object:
    return json.loads(text)


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

_FROM_TEXT: Mapping[Kind, Callable[[str], object]] = {
    "boolean": _boolean_word,
    "integer": int,
    "number": float,
    "text": str,
    "list": _json_or_commas,
    "table": _json,
    "path": str,
    "paths": _json_or_commas,
}
