"""Every storage engine and vector driver the contract suites run against: add a factory to add an engine."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from notewell.protocols import Store
from notewell.store.sqlite import open_index

OpenStore = Callable[..., Store]


def sqlite_segments(folder: Path) -> Store:
    return open_index(folder / "index.sqlite", create=True, read_only=False, vector_driver="segments")


def sqlite_vec(folder: Path) -> Store:
    return open_index(folder / "index.sqlite", create=True, read_only=False, vector_driver="sqlite-vec")


needs_sqlite_vec = pytest.mark.skipif(not importlib.util.find_spec("sqlite_vec"), reason="sqlite-vec is not installed")
STORES = [
    pytest.param(sqlite_segments, id="sqlite with segments"),
    pytest.param(sqlite_vec, id="sqlite with sqlite-vec", marks=needs_sqlite_vec),
]


@pytest.fixture(params=STORES)
def open_store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[OpenStore]:
    """Open a store in a folder of the test, `tmp_path` by default; closed at the end."""
    opened: list[Store] = []

    def open_in(name: str = ".") -> Store:
        folder = tmp_path / name
        folder.mkdir(exist_ok=True)
        store: Store = request.param(folder)
        opened.append(store)
        return store

    yield open_in
    for store in opened:
        store.close()


@pytest.fixture
def store(open_store: OpenStore) -> Store:
    return open_store()
