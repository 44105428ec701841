"""The default storage engine: one SQLite file for each index."""

from notewell.store.sqlite.cache import SqliteEmbeddingCache
from notewell.store.sqlite.store import SqliteStore, open_in_memory, open_index

__all__ = ["SqliteEmbeddingCache", "SqliteStore", "open_in_memory", "open_index"]
