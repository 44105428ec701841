"""Creates, upgrades and checks the tables of an index."""

from __future__ import annotations

import string
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Literal, get_args
from uuid import uuid4

from notewell.errors import IndexCorruptError, IndexReadOnlyError, IndexTooNewError
from notewell.store.sqlite.connection import Database, connect_in_memory
from notewell.store.sqlite.sqlite_vec import SqliteVecIndex, load_sqlite_vec

if TYPE_CHECKING:
    from notewell.store.sqlite.vector_search import VectorIndex

VectorDriver = Literal["segments", "sqlite-vec"]
VECTOR_DRIVERS: tuple[str, ...] = get_args(VectorDriver)

APPLICATION_ID = 0x72636C74  # "rclt" in ASCII, so that no foreign database is taken for an index

# Terms come separated by blanks, and nothing else may split them: all ASCII punctuation is declared part of a token, as
# non-ASCII characters are for the `ascii` tokenizer.
_PUNCTUATION = string.punctuation.replace("'", "''")
_TOKENIZER = f"ascii tokenchars '{_PUNCTUATION}'".replace('"', '""')

# Text is stored apart from the small columns, because scope filters and diffs read only those. `totals` saves every
# search two full counts. Blobs that are patched in place are stored apart from columns that are updated, because SQLite
# rewrites the whole row on UPDATE.
FIRST_SCHEMA = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE totals (
  id INTEGER PRIMARY KEY CHECK (id = 1), documents INTEGER NOT NULL, chunks INTEGER NOT NULL, vectors INTEGER NOT NULL,
  vector_generation INTEGER NOT NULL  -- grows with every change of vectors; names what readers may cache
);
INSERT INTO totals VALUES (1, 0, 0, 0, 0);
CREATE TABLE documents (
  id INTEGER PRIMARY KEY, source TEXT NOT NULL, path TEXT NOT NULL, size INTEGER NOT NULL, mtime_ns INTEGER NOT NULL,
  content_hash TEXT NOT NULL, dated INTEGER,  -- proleptic day number; NULL is evergreen
  private INTEGER NOT NULL,  -- 1: not for groups
  UNIQUE (source, path)
);
CREATE TABLE cursors (document_id INTEGER PRIMARY KEY, cursor TEXT NOT NULL);  -- of those that grow at their end
CREATE TABLE chunks (
  id INTEGER PRIMARY KEY AUTOINCREMENT,  -- never reused: readers cache by it
  document_id INTEGER NOT NULL, first_line INTEGER NOT NULL, last_line INTEGER NOT NULL, has_vector INTEGER NOT NULL,
  embedded_hash BLOB NOT NULL, context_length INTEGER NOT NULL, term_count INTEGER NOT NULL  -- of the text alone
);
CREATE INDEX chunks_of_document ON chunks (document_id);
CREATE INDEX chunks_by_hash ON chunks (embedded_hash);
CREATE INDEX chunks_pending ON chunks (id) WHERE has_vector = 0;
CREATE TABLE chunk_texts (chunk_id INTEGER PRIMARY KEY, context TEXT NOT NULL, text TEXT NOT NULL);
CREATE VIRTUAL TABLE terms USING fts5(
  text, context, content='', contentless_delete=1, tokenize="@TOKENIZER"
);
CREATE VIRTUAL TABLE vocabulary USING fts5vocab(terms, row);  -- a view of the terms; it stores nothing
INSERT INTO terms (terms, rank) VALUES ('automerge', 8);  -- merging at 4 costs 15 % more to write
CREATE TABLE vectors (chunk_id INTEGER PRIMARY KEY, embedding BLOB NOT NULL);  -- float16
CREATE TABLE vector_codec (
  id INTEGER PRIMARY KEY CHECK (id = 1), name TEXT NOT NULL, mean BLOB NOT NULL, fitted_on INTEGER NOT NULL
);
CREATE TABLE vector_segments (
  id INTEGER PRIMARY KEY, source TEXT NOT NULL, version INTEGER NOT NULL, used INTEGER NOT NULL, freed INTEGER NOT NULL
);
CREATE TABLE segment_blobs (segment_id INTEGER PRIMARY KEY, ids BLOB NOT NULL, codes BLOB NOT NULL);
CREATE TABLE segment_slots (chunk_id INTEGER PRIMARY KEY, segment_id INTEGER NOT NULL, slot INTEGER NOT NULL);
""".replace("@TOKENIZER", _TOKENIZER)

# Chunks have the number of their message and its parts; older indexes get them by their next rebuild.
TURNS = """
ALTER TABLE chunks DROP COLUMN term_count;
ALTER TABLE chunks ADD COLUMN turn INTEGER NOT NULL DEFAULT 0;  -- message of a conversation, from 1; 0 in notes
ALTER TABLE chunks ADD COLUMN parts INTEGER NOT NULL DEFAULT 1;  -- chunks of its message, or of its note
CREATE INDEX chunks_by_turn ON chunks (document_id, turn) WHERE turn > 0;
"""

# These show changes that keep size and mtime. 0: unknown, so the file is read and hashed once more.
STAMPS = """
ALTER TABLE documents ADD COLUMN ctime_ns INTEGER NOT NULL DEFAULT 0;
ALTER TABLE documents ADD COLUMN inode INTEGER NOT NULL DEFAULT 0;
"""

# The label of remembered entries; NULL in other text.
ENTRIES = """
ALTER TABLE chunks ADD COLUMN entry TEXT;  -- its short id
ALTER TABLE chunks ADD COLUMN category TEXT;
ALTER TABLE chunks ADD COLUMN importance INTEGER;  -- 1 to 10
CREATE INDEX chunks_by_category ON chunks (category) WHERE category IS NOT NULL;
"""

# The script at position n makes version n + 1 of version n.
MIGRATIONS: tuple[str, ...] = (FIRST_SCHEMA, TURNS, STAMPS, ENTRIES)
TABLES = frozenset(
    {"meta", "totals", "documents", "chunks", "chunk_texts", "terms", "vectors", "vector_codec", "vector_segments"}
    | {"segment_blobs", "segment_slots", "vocabulary", "cursors"}
)


def prepare_tables(
    db: Database, driver: VectorDriver, *, create: bool, read_only: bool, extension_path: str = ""
) -> tuple[VectorDriver, str]:
    """Create, check or upgrade the tables; return the driver to use, and why it is not the requested one."""
    is_empty = not db.value("SELECT count(*) FROM sqlite_schema") and not db.value("PRAGMA application_id")
    if is_empty:  # new, or left by a crash
        if read_only or not create:
            raise IndexCorruptError(f"{db.path} is empty", path=db.path)
        db.rows("PRAGMA journal_mode = WAL")
        migrate(db)
    version = _checked_version(db)
    if not read_only and db.file_is_read_only:
        raise IndexReadOnlyError(f"{db.path} is not writable", hint="check the permissions of the file and its folder")
    if version < len(MIGRATIONS):
        if read_only:
            raise IndexReadOnlyError(
                f"{db.path} was written by an older release and must be upgraded first",
                hint="run `notewell index` once where the index is writable",
            )
        migrate(db)
    recorded: VectorDriver | None = db.value("SELECT value FROM meta WHERE key = 'vector_driver'")
    if recorded is not None and recorded not in VECTOR_DRIVERS:
        raise db.corrupt("the record of its vector driver")
    if read_only:
        driver = recorded or driver
    problem = load_sqlite_vec(db, extension_path) if driver == "sqlite-vec" else ""
    if problem:
        driver = "segments"  # read-only, without segments, it compares every vector
    if recorded != driver and not read_only:
        with db.transaction():
            switch_driver(db, recorded, driver)
    return driver, problem


def _checked_version(db: Database) -> int:
    """Return the schema version of the file; raises when the file is foreign, corrupt or from a newer release."""
    if db.value("PRAGMA application_id") != APPLICATION_ID:
        raise IndexCorruptError(f"{db.path} is not an index of notewell", path=db.path)
    version: int = db.value("PRAGMA user_version")
    if version > len(MIGRATIONS):
        raise IndexTooNewError(
            f"{db.path} was written by a newer release (schema {version}, this one knows {len(MIGRATIONS)})",
            hint="upgrade notewell, or run `notewell index --force` to rebuild the index",
        )
    if version == len(MIGRATIONS):
        missing = TABLES - {name for (name,) in db.rows("SELECT name FROM sqlite_schema WHERE type = 'table'")}
        if missing:
            raise IndexCorruptError(f"{db.path} lacks the tables {sorted(missing)}", path=db.path)
    return version


def migrate(db: Database, *, migrations: Sequence[str] = MIGRATIONS) -> None:
    """Upgrade a file of ours, or an empty one, to the newest schema in one transaction."""
    with db.transaction():  # a second process waits here, then finds nothing to do
        version: int = db.value("PRAGMA user_version")
        for number, script in enumerate(migrations[version:], start=version + 1):
            db.rows(script)
            db.rows(f"PRAGMA user_version = {number}")
        db.rows(f"PRAGMA application_id = {APPLICATION_ID}")


def open_vector_index(driver: VectorDriver) -> VectorIndex:
    """Return the vector index of a driver."""
    if driver == "sqlite-vec":
        return SqliteVecIndex()
    from notewell.store.sqlite.segments import SegmentIndex  # imports NumPy

    return SegmentIndex()


def switch_driver(db: Database, recorded: VectorDriver | None, driver: VectorDriver) -> None:
    """Replace the vector index of the recorded driver, in the caller's transaction."""
    if recorded == "sqlite-vec":
        _drop_sqlite_vec_tables(db)
    elif recorded is not None:
        open_vector_index(recorded).clear(db)
    if db.value("SELECT vectors FROM totals"):
        open_vector_index(driver).rebuild(db)
    db.rows("INSERT OR REPLACE INTO meta (key, value) VALUES ('vector_driver', ?)", (driver,))


def _drop_sqlite_vec_tables(db: Database) -> None:
    """Drop the vec0 table and its shadow tables without sqlite-vec, which DROP TABLE would need."""
    db.rows("PRAGMA writable_schema = ON")
    try:
        db.rows("DELETE FROM sqlite_schema WHERE name = 'vector_knn'")
    finally:
        db.rows("PRAGMA writable_schema = RESET")
    for (name,) in db.rows(
        "SELECT name FROM sqlite_schema WHERE type = 'table' AND name LIKE 'vector~_knn~_%' ESCAPE '~'"
    ):
        db.rows(f'DROP TABLE "{name}"')


# --- checks --------------------------------------------------------------------------------------

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
# Without the tables that FTS5 declares, perhaps differently in other releases of SQLite.
_DECLARED = "SELECT name, sql FROM sqlite_schema WHERE sql IS NOT NULL AND name NOT LIKE 'terms~_%' ESCAPE '~'"


def find_corruption(db: Database) -> list[str]:
    """Return what SQLite finds corrupt in the file; then no row can be trusted."""
    try:
        # FTS5 caches the structure of the table and refreshes it for queries only: without one, the check would compare
        # an old structure with new rows and report errors that do not exist.
        db.rows("SELECT rowid FROM terms WHERE terms MATCH '\"-\"' LIMIT 1")
        found = [line for (line,) in db.rows("PRAGMA integrity_check(20)") if line != "ok"]
        return found or [f"the declaration of {name} has changed" for name in _altered_tables(db)]
    except IndexCorruptError as error:
        return [error.message]


def _altered_tables(db: Database) -> list[str]:
    """Return tables with a changed declaration: a flipped bit may turn a key into a column."""
    found: dict[str, str] = dict(db.rows(_DECLARED))
    return sorted(name for name, sql in _declared() if found.get(name) != sql)


@cache
def _declared() -> tuple[tuple[str, str], ...]:
    """Return the declarations of a new index."""
    as_made = connect_in_memory(f"declared-{uuid4().hex}")
    try:
        migrate(as_made)
        return tuple((name, sql) for name, sql in as_made.rows(_DECLARED))
    finally:
        as_made.close()


@contextmanager
def suspecting_corruption(db: Database) -> Iterator[None]:
    """Turn an error over impossible values into IndexCorruptError if the file is corrupt.

    SQLite returns whatever a page contains, such as NULL for a key, and any code may fail on it.
    """
    try:
        yield
    except (TypeError, ValueError, ArithmeticError, LookupError) as error:
        findings = find_corruption(db)
        if findings:
            raise IndexCorruptError(f"{db.path}: {findings[0]}", path=db.path) from error
        raise


def find_faults(db: Database) -> list[str]:
    """Return inconsistent rows; vector indexes check themselves."""
    counted = [(sentence, db.value(query)) for sentence, query in _FAULTS]
    return [sentence.format(count) for sentence, count in counted if count]
