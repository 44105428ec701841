"""The storage engine for many machines: indexes of many tenants in one PostgreSQL database."""

from notewell.store.postgres.cache import PostgresEmbeddingCache
from notewell.store.postgres.connection import Connections
from notewell.store.postgres.store import PostgresStore, TenantIndex, open_generation, open_store
from notewell.store.postgres.tenant import FixedId, Tenant, WorkspaceId

__all__ = [
    "Connections",
    "FixedId",
    "PostgresEmbeddingCache",
    "PostgresStore",
    "Tenant",
    "TenantIndex",
    "WorkspaceId",
    "open_generation",
    "open_store",
]
