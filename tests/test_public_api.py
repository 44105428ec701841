"""What users import: the names, that they are typed, and that they mean what the documents say."""

from __future__ import annotations

import inspect
import re

import pytest

import notewell
from notewell import errors


def test_every_public_name_is_there():
    for name in notewell.__all__:
        assert getattr(notewell, name) is not None


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _ = notewell.Nothing


def test_async_memory_has_the_same_methods_with_the_same_parameters():
    for name, method in inspect.getmembers(notewell.Memory, inspect.isfunction):
        if name.startswith("_"):
            continue
        twin = getattr(notewell.AsyncMemory, name)
        assert inspect.iscoroutinefunction(twin), name
        assert inspect.signature(twin) == inspect.signature(method), name
        assert twin.__doc__ == method.__doc__, name
    assert inspect.signature(notewell.AsyncMemory.open) == inspect.signature(notewell.Memory.open)


def test_a_memory_shows_what_its_users_need_and_no_parts():
    shown = {name for name in dir(notewell.Memory) if not name.startswith("_")}
    assert shown.isdisjoint({"store", "state", "sources", "update", "selection", "parts", "embedders", "components"})


def test_every_error_is_public_drawn_and_tells_its_exit_code():
    own = {
        name: value
        for name, value in vars(errors).items()
        if inspect.isclass(value) and issubclass(value, errors.NotewellError)
    }
    assert set(own) <= set(notewell.__all__)
    for name, error in own.items():
        assert re.search(rf"\b{name}\b", errors.__doc__ or ""), f"{name} is missing in the drawing"
        assert error.exit_code in {1, 2, 3}


def test_the_kind_of_an_error_is_a_name_for_programs():
    assert errors.PathRefusedError("x").kind == "path_refused"
    assert errors.NotewellError("x").kind == "notewell"


def test_every_public_name_can_be_completed():
    assert set(notewell.__all__) <= set(dir(notewell))
