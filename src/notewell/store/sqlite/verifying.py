"""Looks for rows that are out of step: a snapshot comes in, sentences about what is wrong go out."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from notewell.errors import IndexCorruptError
from notewell.store.sqlite.connection import REBUILD_HINT, Database
from notewell.store.sqlite.schema import altered_tables

# Each query counts what must not exist.
_FAULTS: tuple[tuple[str, str], ...] = (
    (
        "{} chunks belong to no document",
        "SELECT count(*) FROM chunks WHERE document_id NOT IN (SELECT id FROM documents)",
    ),
    (
        "{} cursors belong to no document",
        "SELECT count(*) FROM cursors WHERE document_id NOT IN (SELECT id FROM documents)",
    ),
    ("{} chunks have no text", "SELECT count(*) FROM chunks WHERE id NOT IN (SELECT chunk_id FROM chunk_texts)"),
    ("{} texts belong to no chunk", "SELECT count(*) FROM chunk_texts WHERE chunk_id NOT IN (SELECT id FROM chunks)"),
    ("{} chunks have no keyword entry", "SELECT count(*) FROM chunks WHERE id NOT IN (SELECT id FROM terms_docsize)"),
    (
        "{} keyword entries belong to no chunk",
        "SELECT count(*) FROM terms_docsize WHERE id NOT IN (SELECT id FROM chunks)",
    ),
    (
        "{} chunks are marked embedded and have no vector",
        "SELECT count(*) FROM chunks WHERE has_vector = 1 AND id NOT IN (SELECT chunk_id FROM vectors)",
    ),
    (
        "{} vectors belong to no chunk that is marked embedded",
        "SELECT count(*) FROM vectors WHERE chunk_id NOT IN (SELECT id FROM chunks WHERE has_vector = 1)",
    ),
    (
        "{} of the stored totals are wrong",
        """SELECT (documents <> (SELECT count(*) FROM documents)) + (chunks <> (SELECT count(*) FROM chunks))
        + (vectors <> (SELECT count(*) FROM vectors)) FROM totals""",
    ),
)


def find_damage(db: Database) -> list[str]:
    """Return what SQLite finds wrong with the file itself; with any of it the rows cannot be trusted."""
    try:
        # FTS5 keeps the table's structure in memory and refreshes it for queries only: without one first, the check
        # would hold old structure against new rows and report damage where there is none.
        db.rows("SELECT rowid FROM terms WHERE terms MATCH '\"-\"' LIMIT 1")
        found = [line for (line,) in db.rows("PRAGMA integrity_check(20)") if line != "ok"]
        return found or [f"{name} is declared otherwise than it was" for name in altered_tables(db)]
    except IndexCorruptError as error:
        return [error.message]


@contextmanager
def suspecting_damage(db: Database) -> Iterator[None]:
    """Turn a failure over values that make no sense into damage, if the file is damaged; else it is what it is.

    SQLite gives out what it finds in a page, say NULL for a key, and any code that works with it may stumble.
    """
    try:
        yield
    except (TypeError, ValueError, ArithmeticError, LookupError) as error:
        damage = find_damage(db)
        if damage:
            raise IndexCorruptError(f"{db.path}: {damage[0]}", hint=REBUILD_HINT, path=db.path) from error
        raise


def find_faults(db: Database) -> list[str]:
    """Return which rows are out of step; the indexes derived from vectors check themselves."""
    counted = [(sentence, db.value(query)) for sentence, query in _FAULTS]
    return [sentence.format(count) for sentence, count in counted if count]
