"""Stores documents, chunks and vectors in one SQLite file."""

from __future__ import annotations

import errno
import json
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, cast
from uuid import uuid4

from notewell.errors import IndexMismatchError, IndexReadOnlyError, StoreError
from notewell.store.rows import EMBEDDED, PENDING, SKIPPED, pending_chunk
from notewell.store.sqlite.connection import (
    ConnectionPool,
    Database,
    as_json,
    connect_in_memory,
    create_empty,
    open_for_reading,
    open_for_writing,
)
from notewell.store.sqlite.documents import Writes, stored_embedder
from notewell.store.sqlite.schema import (
    VECTOR_DRIVERS,
    VectorDriver,
    find_corruption,
    find_faults,
    open_vector_index,
    prepare_tables,
    suspecting_corruption,
    switch_driver,
)
from notewell.store.sqlite.snapshot import SqliteSnapshot
from notewell.store.sqlite.sqlite_vec import load_sqlite_vec
from notewell.store.state_folder import StateFolder
from notewell.store.writing import DocumentStore
from notewell.types import (
    EVERYTHING,
    EmbedderIdentity,
    PendingChunk,
    Scope,
    SourceName,
)

if TYPE_CHECKING:
    from notewell.protocols import Vector
    from notewell.store.sqlite.vector_search import VectorIndex, VectorSearch
    from notewell.store.vector_codes import Quantization

_MERGE_SHARE = 5  # merge all keyword segments once a fifth of the chunks is new: 0.15 s at 10,000 chunks
_MERGED_PAGES = 64  # of small segments after a small run: each segment slows a search by a few percent
_FREE_SHARE = 4  # shrink the file once a quarter of it is free: growth would claim less again
NO_SQLITE_VEC = "sqlite-vec cannot be used: {problem}. The built-in vector index is used instead, with the same results"
_FREE_PAGES = 256  # 1 MB; less is not worth rewriting the file


def open_index(
    path: Path,
    *,
    create: bool,
    read_only: bool,
    vector_driver: str = "segments",
    extension_path: str = "",
) -> SqliteStore:
    """Open the index at `path`.

    Raises FileNotFoundError when it is missing and not to be created, IndexCorruptError when the file is corrupt or not
    an index, IndexReadOnlyError when it cannot be written, StoreError when a newer release wrote it. The file is
    converted to `vector_driver`, unless it is opened read-only. `extension_path` is the sqlite-vec library to load;
    empty: that of the installed package.
    """
    if vector_driver not in VECTOR_DRIVERS:
        raise StoreError(f"unknown vector driver {vector_driver!r}", hint=f"choose one of {', '.join(VECTOR_DRIVERS)}")
    if not path.exists():
        if not create or read_only:
            raise FileNotFoundError(errno.ENOENT, "there is no index at this path", str(path))
        create_empty(path)

    def connect(*, read_only: bool) -> Database:
        db = open_for_reading(path) if read_only else open_for_writing(path)
        if driver == "sqlite-vec" and (problem := load_sqlite_vec(db, extension_path)):
            db.close()
            raise StoreError(f"sqlite-vec can no longer be loaded: {problem}")
        return db

    driver: VectorDriver | None = None  # set by `prepare_tables`
    first = connect(read_only=read_only)
    try:
        driver, problem = prepare_tables(
            first,
            cast("VectorDriver", vector_driver),
            create=create,
            read_only=read_only,
            extension_path=extension_path,
        )
    except BaseException:
        first.close()
        raise
    pool = ConnectionPool(connect, first, first_writes=not read_only)
    notes = (NO_SQLITE_VEC.format(problem=problem),) if problem else ()
    return SqliteStore(path, pool, read_only=read_only, vector_driver=driver, notes=notes)


def open_in_memory() -> SqliteStore:
    """Open an empty index in memory, for one thread."""
    name = f"notewell-{uuid4().hex}"
    first = connect_in_memory(name)
    driver, _ = prepare_tables(first, "segments", create=True, read_only=False)
    pool = ConnectionPool(lambda read_only: connect_in_memory(name), first, first_writes=True)  # noqa: ARG005
    return SqliteStore(Path(name), pool, read_only=False, vector_driver=driver)


class SqliteStore(DocumentStore):
    """Implements `Store` in one SQLite file. Open it with `open_index`."""

    def __init__(
        self,
        path: Path,
        pool: ConnectionPool,
        *,
        read_only: bool,
        vector_driver: VectorDriver,
        notes: tuple[str, ...] = (),
    ) -> None:
        self.path = path
        self.vector_driver = vector_driver
        self.notes = notes
        self.read_only = read_only
        self._pool = pool
        self._search: VectorSearch | None = None
        self._chunks_written = 0  # since the keyword segments were last merged by this object

    def reading(self) -> AbstractContextManager[SqliteSnapshot]:
        return self.reading_within(EVERYTHING)

    @contextmanager
    def reading_within(self, scope: Scope) -> Iterator[SqliteSnapshot]:
        with self._pool.reader() as db:
            db.rows("BEGIN")
            self._agree_on_driver(db, writing=False)  # also the first read, which starts a deferred transaction
            snapshot = SqliteSnapshot(db, self._vector_search, scope)
            try:
                with suspecting_corruption(db):
                    yield snapshot
            finally:
                snapshot.end()

    def write_meta(self, values: Mapping[str, str]) -> None:
        with self._writing() as writes:
            writes.db.run_many("INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)", values.items())

    def set_embedder(self, identity: EmbedderIdentity, quantization: Quantization) -> None:
        with self._pool.reader() as db:
            if stored_embedder(db) == identity and _meta(db, "quantization") == quantization:
                return
        with self._writing() as writes:
            db = writes.db
            recorded = stored_embedder(db)
            any_vector = bool(db.value("SELECT vectors FROM totals"))
            if any_vector and recorded != identity:
                raise IndexMismatchError(str(recorded), str(identity))
            db.run_many(
                "INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)",
                [("embedder", json.dumps(asdict(identity))), ("quantization", quantization)],
            )
            if any_vector:
                self._vector_index().rebuild(db)
            elif recorded is not None:
                self._vector_index().clear(db)  # its tables may be made for other dimensions
                db.rows("UPDATE chunks SET has_vector = ? WHERE has_vector = ?", (PENDING, SKIPPED))

    def pending(self, limit: int, *, after: int = 0) -> Sequence[PendingChunk]:
        with self._pool.reader() as db:
            found = db.rows(
                "SELECT id, embedded_hash, context, text FROM chunks JOIN chunk_texts ON chunk_id = id"
                " WHERE has_vector = 0 AND id > ? ORDER BY id LIMIT ?",  # a bound 0 would not use the partial index
                (after, max(limit, 0)),
            )
        return [pending_chunk(*row) for row in found]

    def put_vectors(self, vectors: Mapping[int, Vector]) -> None:
        if not vectors:
            return
        with self._writing() as writes:
            by_source: defaultdict[SourceName, dict[int, Vector]] = defaultdict(dict)
            replaced = []
            for chunk_id, source, has_vector in writes.db.rows(
                "SELECT chunks.id, source, has_vector FROM chunks JOIN documents ON documents.id = document_id"
                " WHERE chunks.id IN (SELECT value FROM json_each(?)) ORDER BY chunks.id",
                (as_json(vectors),),
            ):
                by_source[source][chunk_id] = vectors[chunk_id]
                if has_vector == EMBEDDED:
                    replaced.append(chunk_id)
            writes.remove_vectors(replaced)
            for source, of_source in by_source.items():
                writes.add_vectors(source, of_source)

    def skip_vectors(self, chunk_ids: Collection[int]) -> None:
        if chunk_ids:
            with self._writing() as writes:
                writes.db.rows(
                    "UPDATE chunks SET has_vector = ? WHERE has_vector = ? AND id IN (SELECT value FROM json_each(?))",
                    (SKIPPED, PENDING, as_json(chunk_ids)),
                )

    def optimize(self) -> None:
        with self._writing() as writes:
            db = writes.db
            if db.value("SELECT vectors FROM totals"):
                self._vector_index().tidy(db)
            many = self._chunks_written * _MERGE_SHARE > db.value("SELECT chunks FROM totals")
            if many:
                db.rows("INSERT INTO terms (terms) VALUES ('optimize')")
            else:
                db.rows("INSERT INTO terms (terms, rank) VALUES ('merge', ?)", (_MERGED_PAGES,))
        self._chunks_written = 0
        with self._pool.writer() as db:
            free, pages = db.value("PRAGMA freelist_count"), db.value("PRAGMA page_count")
            if free > _FREE_PAGES and free * _FREE_SHARE > pages:
                db.rows("VACUUM")
            if (
                many
            ):  # SQLite folds the log back every 1,000 pages; doing so now would double the cost of a small change
                db.rows("PRAGMA wal_checkpoint(PASSIVE)")

    def erase_deleted(self) -> None:
        """Rewrite the file without anything of removed documents, also in free pages."""
        with self._writing() as writes:
            db = writes.db
            db.rows("INSERT INTO terms (terms) VALUES ('optimize')")  # deleted terms remain until a merge
            if db.value("SELECT vectors FROM totals"):
                self._vector_index().rebuild(db)  # the codec contains the mean of all vectors
        with self._pool.writer() as db:
            db.rewrite_file()

    def embedded_hashes(self) -> set[str]:
        with self._pool.reader() as db:
            return {digest.hex() for (digest,) in db.rows("SELECT DISTINCT embedded_hash FROM chunks")}

    def verify(self) -> Sequence[str]:
        with self._pool.reader() as db:
            db.rows("BEGIN")
            if corruption := find_corruption(db):
                return corruption
            found = find_faults(db)
            if db.rows("SELECT 1 FROM vectors LIMIT 1"):
                found += self._vector_index().findings(db)
        return found

    def size_bytes(self) -> int:
        return StateFolder.bytes_of(self.path)

    def close(self) -> None:
        self._pool.close()

    @contextmanager
    def _writing(self) -> Iterator[Writes]:
        if self.read_only:
            raise IndexReadOnlyError(
                f"{self.path} is open for reading only", hint="check the permissions of the folder that holds the index"
            )
        with self._pool.writer() as db, suspecting_corruption(db), db.joined_transaction():
            self._agree_on_driver(db, writing=True)
            writes = Writes(db, self._vector_index)
            yield writes
            self._chunks_written += writes.changed_chunks

    def _agree_on_driver(self, db: Database, *, writing: bool) -> None:
        """Use the vector driver of the file, which another process may have switched since it was opened.

        If one of two processes cannot load sqlite-vec, segments win.
        """
        recorded = _meta(db, "vector_driver")
        if recorded == self.vector_driver or recorded is None:
            return
        if recorded == "segments":
            self.vector_driver, self._search = "segments", None
        elif writing:
            switch_driver(db, "sqlite-vec", "segments")

    def _vector_search(self) -> VectorSearch:
        if self._search is None:
            from notewell.store.sqlite.vector_search import VectorSearch  # imports NumPy

            self._search = VectorSearch(open_vector_index(self.vector_driver))
        return self._search

    def _vector_index(self) -> VectorIndex:
        return self._vector_search().index


def _meta(db: Database, key: str) -> str | None:
    value: str | None = db.value("SELECT value FROM meta WHERE key = ?", (key,))
    return value
