"""The default storage engine: one SQLite file an index; a path comes in, a `SqliteStore` goes out."""

from notewell.store.sqlite.cache import SqliteEmbeddingCache
from notewell.store.sqlite.cache_tables import CacheStats
from notewell.store.sqlite.opening import open_in_memory, open_index
from notewell.store.sqlite.store import SqliteStore

__all__ = ["CacheStats", "SqliteEmbeddingCache", "SqliteStore", "open_in_memory", "open_index"]
