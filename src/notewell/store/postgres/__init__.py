"""The storage engine for many machines: indexes of many tenants in one PostgreSQL database."""

from notewell.store.postgres.connection import Connections
from notewell.store.postgres.store import PostgresStore, TenantIndex, open_generation, open_store
from notewell.store.postgres.tenant import Tenant

__all__ = ["Connections", "PostgresStore", "Tenant", "TenantIndex", "open_generation", "open_store"]
