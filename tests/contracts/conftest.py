"""Every storage engine and vector driver the contract suites run against: add a factory to add an engine."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from notewell.protocols import Store
from notewell.store.sqlite import open_index
from tests.postgres_server import shared_database

OpenStore = Callable[..., Store]


def sqlite_segments(folder: Path) -> Store:
    return open_index(folder / "index.sqlite", create=True, read_only=False, vector_driver="segments")


def sqlite_vec(folder: Path) -> Store:
    return open_index(folder / "index.sqlite", create=True, read_only=False, vector_driver="sqlite-vec")


def postgres(folder: Path) -> Store:
    pytest.importorskip("psycopg", reason="psycopg is not installed")
    from notewell.store.postgres import open_store

    return open_store(shared_database(), str(folder))


def postgres_segments(folder: Path) -> Store:
    """Codes from the second vector on, whenever the store is tidied up."""
    pytest.importorskip("psycopg", reason="psycopg is not installed")
    from notewell.store.postgres import open_store
    from notewell.store.postgres.vectors import VectorTable

    return open_store(shared_database(), str(folder), vectors=VectorTable(exact_limit=1, tail=1))


needs_sqlite_vec = pytest.mark.skipif(not importlib.util.find_spec("sqlite_vec"), reason="sqlite-vec is not installed")
STORES = [
    pytest.param(sqlite_segments, id="sqlite with segments"),
    pytest.param(sqlite_vec, id="sqlite with sqlite-vec", marks=needs_sqlite_vec),
    pytest.param(postgres, id="postgres", marks=pytest.mark.slow),
    pytest.param(postgres_segments, id="postgres with segments", marks=pytest.mark.slow),
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
