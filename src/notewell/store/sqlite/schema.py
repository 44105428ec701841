"""The tables of an index, and how older files become current: a connection comes in, a current file goes out."""

from __future__ import annotations

import string
from collections.abc import Sequence

from notewell.errors import IndexCorruptError, IndexTooNewError
from notewell.store.sqlite.connection import REBUILD_HINT, Database, connect_in_memory

APPLICATION_ID = 0x72636C74  # "rclt" in ASCII, so that no foreign database is taken for an index

# States of `chunks.has_vector`; a skipped chunk is in a writing that the embedder does not know.
PENDING, EMBEDDED, SKIPPED = 0, 1, 2

# Callers hand over finished terms separated by blanks, so nothing but blanks may split: every printable ASCII
# punctuation mark is declared part of a token; non-ASCII characters are for the `ascii` tokenizer anyway.
_PUNCTUATION = string.punctuation.replace("'", "''")
_TOKENIZER = f"ascii tokenchars '{_PUNCTUATION}'".replace('"', '""')

# Text lives apart from the small columns: scope filters and diffs touch the small rows only.
# `totals` spares every search two full counts. Blobs that are patched in place live apart from the columns that are
# updated, because SQLite rewrites a whole row on UPDATE.
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

# Chunks know their message and how many parts it has. What an older index holds is replaced by its next rebuild.
TURNS = """
ALTER TABLE chunks DROP COLUMN term_count;
ALTER TABLE chunks ADD COLUMN turn INTEGER NOT NULL DEFAULT 0;  -- message of a conversation, from 1; 0 in notes
ALTER TABLE chunks ADD COLUMN parts INTEGER NOT NULL DEFAULT 1;  -- chunks of its message, or of its note
CREATE INDEX chunks_by_turn ON chunks (document_id, turn) WHERE turn > 0;
"""

MIGRATIONS: tuple[str, ...] = (FIRST_SCHEMA, TURNS)  # the script at position n makes version n + 1 of version n
TABLES = frozenset(
    {"meta", "totals", "documents", "chunks", "chunk_texts", "terms", "vectors", "vector_codec", "vector_segments"}
    | {"segment_blobs", "segment_slots", "vocabulary", "cursors"}
)


def is_empty(db: Database) -> bool:
    """Say whether the file holds nothing at all, as after a crash right after it was created."""
    return not db.value("SELECT count(*) FROM sqlite_schema") and not db.value("PRAGMA application_id")


def check_ours(db: Database, *, newest: int = len(MIGRATIONS)) -> int:
    """Return the schema version of the file; raises when the file is foreign, damaged or from a newer release."""
    if db.value("PRAGMA application_id") != APPLICATION_ID:
        raise IndexCorruptError(f"{db.path} is not an index of notewell", hint=REBUILD_HINT, path=db.path)
    version: int = db.value("PRAGMA user_version")
    if version > newest:
        raise IndexTooNewError(
            f"{db.path} was written by a newer release (schema {version}, this one knows {newest})",
            hint="upgrade notewell, or run `notewell index --force` to build the index anew",
        )
    if version == len(MIGRATIONS):
        missing = TABLES - {name for (name,) in db.rows("SELECT name FROM sqlite_schema WHERE type = 'table'")}
        if missing:
            raise IndexCorruptError(f"{db.path} lacks the tables {sorted(missing)}", hint=REBUILD_HINT, path=db.path)
    return version


def altered_tables(db: Database) -> list[str]:
    """Return what is declared otherwise than by us: one bit may turn a key into a column, and SQLite is content."""
    as_made = connect_in_memory(f"declared-{id(db)}")
    try:
        migrate(as_made)
        declared = as_made.rows(_DECLARED)
    finally:
        as_made.close()
    found: dict[str, str] = dict(db.rows(_DECLARED))
    return sorted(name for name, sql in declared if found.get(name) != sql)


# FTS5 declares its own tables, in other releases of SQLite perhaps in other words.
_DECLARED = "SELECT name, sql FROM sqlite_schema WHERE sql IS NOT NULL AND name NOT LIKE 'terms~_%' ESCAPE '~'"


def migrate(db: Database, *, migrations: Sequence[str] = MIGRATIONS) -> None:
    """Bring a file of ours, or an empty one, to the newest schema in one transaction; cheap when it already is."""
    with db.transaction():  # a second process waits here and then finds the work done
        version: int = db.value("PRAGMA user_version")
        for number, script in enumerate(migrations[version:], start=version + 1):
            db.rows(script)
            db.rows(f"PRAGMA user_version = {number}")
        db.rows(f"PRAGMA application_id = {APPLICATION_ID}")
