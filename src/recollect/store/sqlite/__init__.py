"""The default storage engine: one SQLite file an index; a path comes in, a `SqliteStore` goes out."""

from recollect.store.sqlite.cache import SqliteEmbeddingCache
from recollect.store.sqlite.cache_tables import CacheStats
from recollect.store.sqlite.opening import open_in_memory, open_index
from recollect.store.sqlite.store import SqliteStore

__all__ = ["CacheStats", "SqliteEmbeddingCache", "SqliteStore", "open_in_memory", "open_index"]
