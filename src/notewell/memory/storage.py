"""Opens where a memory is kept, as the settings say: in a SQLite file of the agent's folder, or in PostgreSQL."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from notewell.errors import DiskFullError, SettingsError
from notewell.store.live_index import LiveIndex
from notewell.store.sqlite import open_index
from notewell.store.sqlite.cache import SqliteEmbeddingCache

if TYPE_CHECKING:
    from collections.abc import Callable

    from notewell.protocols import Generations, ManagedCache, Store, StoreAccess
    from notewell.settings import Settings
    from notewell.store.state_folder import StateFolder

WORKSPACE_ID = Path(".notewell") / "workspace-id"  # in the workspace


@dataclass(frozen=True, slots=True)
class Storage:
    """The indexes of one agent and its embedding cache."""

    indexes: Generations
    live: StoreAccess  # what is synced
    answering: StoreAccess  # what is searched: the same, or a replica of it
    create_store: Callable[[Path], Store]
    caches: CacheAccess
    follows: bool = False  # the notes are on other machines: everything is read from the database

    def close(self) -> None:
        """Release everything that is open; the next use opens it again."""
        self.caches.close()
        self.live.close()
        if self.answering is not self.live:
            self.answering.close()


class CacheAccess:
    """Opens the embedding cache once it is needed."""

    def __init__(self, open_cache: Callable[[], ManagedCache | None]) -> None:
        self._open_cache = open_cache
        self._lock = threading.Lock()
        self._cache: ManagedCache | None = None

    def open(self) -> ManagedCache | None:
        with self._lock:
            if self._cache is None:
                self._cache = self._open_cache()
            return self._cache

    def close(self) -> None:
        with self._lock:
            if self._cache:
                self._cache.close()
            self._cache = None


def open_storage(settings: Settings, workspace: Path, folder: StateFolder, agent: str) -> Storage:
    """Return where this agent's memory is kept."""
    if settings.store.url or settings.store.read_url or settings.store.follow:
        return _in_postgres(settings, workspace, agent)
    return _in_files(settings, folder)


def _in_files(settings: Settings, folder: StateFolder) -> Storage:
    def open_cache() -> ManagedCache | None:
        cache = settings.cache
        if not cache.enabled or not folder.path.exists():
            return None
        return SqliteEmbeddingCache(folder.cache_path, max_entries=cache.max_entries, max_age_days=cache.max_age_days)

    live = LiveIndex(folder, lambda path: _open_store(path, folder, settings))
    return Storage(
        indexes=folder,
        live=live,
        answering=live,
        create_store=lambda path: open_sqlite_index(path, settings, create=True),
        caches=CacheAccess(open_cache),
    )


def _open_store(path: Path, folder: StateFolder, settings: Settings) -> Store:
    folder.check_owner()  # two workspaces may have been opened before either had written here
    try:
        return open_sqlite_index(path, settings, read_only=not folder.writable())
    except DiskFullError:  # even opening for writing needs some room; searching does not
        return open_sqlite_index(path, settings, read_only=True)


def open_sqlite_index(path: Path, settings: Settings, *, create: bool = False, read_only: bool = False) -> Store:
    """Open an index file with the vector driver of the settings."""
    vector = settings.store.vector
    return open_index(
        path,
        create=create,
        read_only=read_only,
        vector_driver=vector.driver,
        extension_path=vector.extension_path,
    )


def _in_postgres(settings: Settings, workspace: Path, agent: str) -> Storage:
    store = settings.store
    if not store.url and not (store.follow and store.read_url):
        raise SettingsError(
            "store.follow and store.read_url need store.url",
            hint="set store.url to the database that holds the memory, such as postgresql://agent@db.example/memory",
        )
    if store.follow and not store.tenant:
        raise SettingsError(
            "store.follow needs store.tenant: the name of the memory to follow",
            hint="`notewell status` on a machine that holds the notes shows it",
        )
    try:
        from notewell.store.postgres import (
            Connections,
            PostgresEmbeddingCache,
            Tenant,
            TenantIndex,
            WorkspaceId,
            open_generation,
        )
    except ImportError as error:
        raise SettingsError(
            f"store.url needs psycopg, which is not installed: {error}", hint='run `pip install "notewell[postgres]"`'
        ) from error

    owner = WorkspaceId(workspace / WORKSPACE_ID)

    def tenant_at(url: str, *, follow: bool) -> Tenant:
        return Tenant(Connections(url), name=store.tenant, agent=agent, workspace_id=owner, follow=follow)

    def open_cache() -> ManagedCache | None:
        cache = settings.cache
        if not cache.enabled:
            return None
        return PostgresEmbeddingCache(tenant, max_entries=cache.max_entries, max_age_days=cache.max_age_days)

    tenant = tenant_at(store.read_url if store.follow and store.read_url else store.url, follow=store.follow)
    live = TenantIndex(tenant)
    replica = TenantIndex(tenant_at(store.read_url, follow=True)) if store.read_url and not store.follow else live
    return Storage(
        indexes=tenant,
        live=live,
        answering=replica,
        create_store=lambda path: open_generation(tenant, path),
        caches=CacheAccess(open_cache),
        follows=store.follow,
    )
