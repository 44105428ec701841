"""The tables of the embedding cache: an open file comes in, one that has them goes out; and the figures of its use."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from notewell.errors import IndexCorruptError
from notewell.store.sqlite.connection import Database

APPLICATION_ID = 0x72636C63  # "rclc" in ASCII
_VERSION = 2  # 1 had no counters
_COUNTERS = "CREATE TABLE IF NOT EXISTS counters (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;"
_SCHEMA = f"""
CREATE TABLE IF NOT EXISTS spaces (
  id INTEGER PRIMARY KEY, provider TEXT NOT NULL, model TEXT NOT NULL, key TEXT NOT NULL, dimensions INTEGER NOT NULL,
  UNIQUE (provider, model, key, dimensions)
);
CREATE TABLE IF NOT EXISTS entries (
  id INTEGER PRIMARY KEY, space_id INTEGER NOT NULL, text_hash BLOB NOT NULL, vector BLOB NOT NULL,  -- float16
  used_at INTEGER NOT NULL,  -- seconds since 1970
  UNIQUE (space_id, text_hash)
);
CREATE INDEX IF NOT EXISTS entries_by_use ON entries (used_at);
{_COUNTERS}
PRAGMA application_id = {APPLICATION_ID};
PRAGMA user_version = {_VERSION};
"""


@dataclass(frozen=True, slots=True)
class CacheStats:
    """How much the cache holds and how useful it was since it was begun or cleared."""

    entries: int
    bytes: int
    max_entries: int
    oldest_use: datetime | None
    hits: int  # vectors taken from the cache
    misses: int  # vectors that had to be made, and were put in

    @property
    def hit_rate(self) -> float | None:
        """The share of vectors that came from the cache; None before there was any."""
        total = self.hits + self.misses
        return self.hits / total if total else None


def make_or_check_tables(db: Database) -> None:
    """Make the tables in an empty file; raises IndexCorruptError for a file that is something else."""
    found = db.value("PRAGMA application_id")
    if found == APPLICATION_ID:
        if db.value("PRAGMA user_version") < _VERSION and not db.file_is_read_only:
            with db.transaction():
                db.rows(f"{_COUNTERS} PRAGMA user_version = {_VERSION};")
        return
    if found or db.file_is_read_only or db.value("SELECT count(*) FROM sqlite_schema"):
        raise IndexCorruptError(f"{db.path} is not an embedding cache")
    db.rows("PRAGMA journal_mode = WAL")
    with db.transaction():
        db.rows(_SCHEMA)
