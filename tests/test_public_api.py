"""What users import: the names, that they are typed, and that they mean what the documents say."""

from __future__ import annotations

import inspect
import re

import pytest

import recollect
from recollect import errors


def test_every_public_name_is_there():
    for name in recollect.__all__:
        assert getattr(recollect, name) is not None


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _ = recollect.Nothing


def test_async_memory_has_the_same_methods_with_the_same_parameters():
    for name, method in inspect.getmembers(recollect.Memory, inspect.isfunction):
        if name.startswith("_") or name in {"store", "sources", "update"}:
            continue
        twin = getattr(recollect.AsyncMemory, name)
        assert inspect.iscoroutinefunction(twin), name
        assert list(inspect.signature(twin).parameters) == list(inspect.signature(method).parameters), name


def test_every_error_is_public_drawn_and_tells_its_exit_code():
    own = {
        name: value
        for name, value in vars(errors).items()
        if inspect.isclass(value) and issubclass(value, errors.RecollectError)
    }
    assert set(own) <= set(recollect.__all__)
    for name, error in own.items():
        assert re.search(rf"\b{name}\b", errors.__doc__ or ""), f"{name} is missing in the drawing"
        assert error.exit_code in {1, 2, 3}


def test_the_kind_of_an_error_is_a_name_for_programs():
    assert errors.PathRefusedError("x").kind == "path_refused"
    assert errors.RecollectError("x").kind == "recollect"
