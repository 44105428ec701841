"""Opens the storage that the settings choose: a SQLite file in the agent's folder, or PostgreSQL.

A machine without the notes can follow a database; it reads documents from the index instead of files.
"""

from __future__ import annotations

import errno
import sys
import threading
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from notewell.errors import DiskFullError, NoteNotFoundError, PathRefusedError, SettingsError
from notewell.store.live_index import LiveIndex
from notewell.store.sqlite import open_index
from notewell.store.sqlite.cache import SqliteEmbeddingCache
from notewell.types import Document, Listing, SourceName

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Generator, Iterator, Mapping

    from notewell.protocols import EmbeddingCache, Store
    from notewell.settings import Settings
    from notewell.sources.notes import NotesSource
    from notewell.sources.transcripts.source import TranscriptSource
    from notewell.store.live_index import Generations, ReadAccess, StoreAccess
    from notewell.store.state_folder import StateFolder
    from notewell.types import FileStamp, Problem, StoredChunk, StoredDocument

WORKSPACE_ID = Path(".notewell") / "workspace-id"  # in the workspace


@dataclass(frozen=True, slots=True)
class Storage:
    """The indexes of one agent and its embedding cache."""

    indexes: Generations
    live: StoreAccess  # what is synced
    answering: StoreAccess  # what is searched: the same, or a replica of it
    create_store: Callable[[Path], Store]
    caches: CacheAccess
    follows: bool = False  # the notes are on other machines, and everything is read from the database

    def close(self) -> None:
        """Release everything that is open; the next use opens it again."""
        self.caches.close()
        self.live.close()
        if self.answering is not self.live:
            self.answering.close()


class CacheAccess:
    """Opens the embedding cache when it is first needed."""

    def __init__(self, open_cache: Callable[[], EmbeddingCache | None]) -> None:
        self._open_cache = open_cache
        self._lock = threading.Lock()
        self._cache: EmbeddingCache | None = None

    def open(self) -> EmbeddingCache | None:
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
    """Return the storage of an agent's memory."""
    if settings.store.url or settings.store.read_url or settings.store.follow:
        return _in_postgres(settings, workspace, agent)
    return _in_files(settings, folder)


def _in_files(settings: Settings, folder: StateFolder) -> Storage:
    def open_cache() -> EmbeddingCache | None:
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
    folder.check_owner()  # two workspaces may have been opened before either wrote here
    try:
        return open_sqlite_index(path, settings, read_only=not folder.writable())
    except DiskFullError:  # opening for writing takes space, searching does not
        return open_sqlite_index(path, settings, read_only=True)


def open_sqlite_index(path: Path, settings: Settings, *, create: bool = False, read_only: bool = False) -> Store:
    """Open an index file with the vector driver of the settings."""
    vector = settings.store.vector
    return open_index(
        path, create=create, read_only=read_only, vector_driver=vector.driver, extension_path=vector.extension_path
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

    def open_cache() -> EmbeddingCache | None:
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


# --- following -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FollowedSource:
    """Implements `Source` with the documents of an index, as the audience of that index sees them."""

    index: ReadAccess
    name: SourceName

    def list(self, paths: Collection[str] | None = None) -> Listing:
        """Return the stamps of what is indexed; with `paths` only of those."""
        return Listing(tuple(known.stamp for known in self._documents(paths).values()))

    def read(self, stamp: FileStamp, *, as_written: bool = False) -> Document:  # noqa: ARG002 - nothing is written here
        """Return a document as it is indexed; lines that are in no chunk, such as front matter, are empty."""
        known = self._documents([stamp.path]).get((self.name, stamp.path))
        if known is None:
            raise FileNotFoundError(errno.ENOENT, "there is no such document", stamp.path)
        text = "".join(f"{line}\n" for line in self._lines(stamp.path))
        return Document(known.stamp, text, known.content_hash, dated=known.dated, private=known.private)

    def may_hold(self, path: str) -> bool:
        """Return whether a path has the form of this source's paths."""
        return path.startswith("sessions/") == (self.name == "sessions")

    def exists(self, path: str) -> bool:
        """Return whether a document is indexed under this path."""
        return bool(self._documents([path]))

    def stored_path(self, file: Path) -> str | None:
        """Return None: no file on this machine belongs to the memory."""
        del file
        return None

    def stamp_of(self, path: str) -> FileStamp:
        """Return the stamp of one document; raises PathRefusedError or NoteNotFoundError."""
        known = self._documents([path])
        if known:
            return next(iter(known.values())).stamp
        raise NoteNotFoundError(path) if self._could_be(path) else PathRefusedError(path)

    def resolve(self, path: str) -> Path:
        """Raise PathRefusedError: documents are not files here."""
        raise PathRefusedError(path)

    def place_to_write(self, path: str) -> Path | None:
        """Return None: nothing is written here."""
        del path
        return None

    def rendered(self, path: str, first_line: int) -> Generator[str]:
        """Yield every line of a conversation from `first_line` on."""
        yield from islice(self._lines(path), min(first_line - 1, sys.maxsize), None)

    def unreadable(self, positions: Mapping[str, str | None]) -> Iterator[Problem]:
        """Yield nothing: unreadable files are reported where the files are."""
        del positions
        yield from ()

    def _could_be(self, path: str) -> bool:
        parts = path.split("/")
        known_ending = path.lower().endswith((".md", ".markdown", ".json5", ".jsonl"))
        return known_ending and not path.startswith("/") and ".." not in parts and "\0" not in path

    def _documents(self, paths: Collection[str] | None = None) -> Mapping[tuple[SourceName, str], StoredDocument]:
        with self.index.use() as store:
            if store is None:
                return {}
            with store.reading() as snapshot:
                found = snapshot.documents(self.name, paths)
        return found

    def _lines(self, path: str) -> Iterator[str]:
        """Yield the lines of a document from its chunks, which may overlap; blank where no chunk has the line."""
        with self.index.use() as store:
            if store is None:
                return
            with store.reading() as snapshot:
                chunks = snapshot.chunks_of(self.name, path)
        by_line = _by_message(chunks) if self.name == "sessions" else _by_line(chunks)
        for number in range(1, max(by_line, default=0) + 1):
            yield by_line.get(number, "")


if TYPE_CHECKING:
    Notes = NotesSource | FollowedSource  # of files, or of a database
    Transcripts = TranscriptSource | FollowedSource


def _by_line(chunks: Collection[StoredChunk]) -> dict[int, str]:
    lines: dict[int, str] = {}
    for chunk in chunks:
        for number, line in enumerate(chunk.text.split("\n"), chunk.first_line):
            if number <= chunk.last_line:
                lines[number] = _joined(lines.get(number, ""), line)
    return lines


def _joined(line: str, piece: str) -> str:
    """Return a line extended by a piece that may overlap it, as chunks of a very long line do."""
    if piece in line:
        return line
    shared = next((n for n in range(min(len(line), len(piece)), 0, -1) if line.endswith(piece[:n])), 0)
    return line + piece[shared:]


def _by_message(chunks: Collection[StoredChunk]) -> dict[int, str]:
    """Return one message a line, as transcripts are shown."""
    lines: dict[int, str] = {}
    for chunk in chunks:
        before = lines.get(chunk.first_line)
        lines[chunk.first_line] = chunk.text if before is None else f"{before} {chunk.text}"
    return lines
