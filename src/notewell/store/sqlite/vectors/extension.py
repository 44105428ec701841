"""Loads the sqlite-vec extension into a connection; apart from its driver so that opening needs no NumPy."""

from __future__ import annotations

from notewell.errors import StoreError
from notewell.store.sqlite.connection import Database


def load_sqlite_vec(db: Database, library: str = "") -> None:
    """Make vec0 tables usable on this connection, by the library at a path or that of the installed package."""
    if library:
        db.load_extension(library)
        return
    try:
        import sqlite_vec
    except ImportError as error:
        raise StoreError(
            f"{db.path} keeps its vectors with sqlite-vec, which is not installed",
            hint='install it with `pip install "notewell[sqlite-vec]"`, or build the index anew',
        ) from error
    db.load_extension(sqlite_vec.loadable_path())
