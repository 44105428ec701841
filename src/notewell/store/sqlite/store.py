"""Keeps documents, their chunks and vectors in one SQLite file, and opens such files."""

from __future__ import annotations

import errno
import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, cast
from uuid import uuid4

from notewell.errors import IndexMismatchError, IndexReadOnlyError, StoreError
from notewell.store.rows import EMBEDDED, PENDING, SKIPPED, pending_chunk, plan_chunks
from notewell.store.sqlite import documents as rows
from notewell.store.sqlite.connection import (
    BUSY_TIMEOUT_S,
    ConnectionPool,
    Database,
    as_json,
    connect_in_memory,
    create_empty,
    open_for_reading,
    open_for_writing,
)
from notewell.store.sqlite.schema import (
    find_corruption,
    find_faults,
    prepare_tables,
    suspecting_corruption,
    switch_driver,
)
from notewell.store.sqlite.snapshot import SqliteSnapshot, stored_embedder
from notewell.store.sqlite.vector_index import (
    VECTOR_DRIVERS,
    VectorDriver,
    VectorIndex,
    load_sqlite_vec,
    open_vector_index,
)
from notewell.store.state_folder import StateFolder
from notewell.types import (
    EVERYTHING,
    EmbedderIdentity,
    PendingChunk,
    PreparedChunk,
    Scope,
    SourceName,
    StoredDocument,
)

if TYPE_CHECKING:
    from notewell.protocols import Vector
    from notewell.store.sqlite.vector_search import VectorSearch
    from notewell.store.vector_codes import Quantization

_MERGE_SHARE = 5  # merge all keyword segments once a fifth of the chunks is new: 0.15 s at 10,000 chunks
_MERGED_PAGES = 64  # at most, of small segments after a small run: every one more slows a search by a few percent
_FREE_SHARE = 4  # give a quarter of the file back to the disk, but not less: growth would claim it again
NO_SQLITE_VEC = "sqlite-vec cannot be used: {problem}. The built-in vector index is used instead, with the same results"
_FREE_PAGES = 256  # 1 MB; below it a rewrite of the file frees nothing worth having


def open_index(
    path: Path,
    *,
    create: bool,
    read_only: bool,
    vector_driver: str = "segments",
    extension_path: str = "",
    busy_timeout_s: float = BUSY_TIMEOUT_S,
    vfs: str | None = None,
) -> SqliteStore:
    """Open the index at `path`.

    Raises FileNotFoundError when there is none and none is to be created, IndexCorruptError when the file is corrupt or
    not an index, IndexReadOnlyError when it cannot be written though asked, StoreError when a newer release wrote it.
    A file written with another vector driver gets that of `vector_driver`; read-only, it keeps the one it has.
    `extension_path` is the sqlite-vec library to load; empty is that of the installed package.
    `vfs` names a SQLite file layer registered by the caller.
    """
    if vector_driver not in VECTOR_DRIVERS:
        raise StoreError(f"unknown vector driver {vector_driver!r}", hint=f"choose one of {', '.join(VECTOR_DRIVERS)}")
    if not path.exists():
        if not create or read_only:
            raise FileNotFoundError(errno.ENOENT, "there is no index at this path", str(path))
        create_empty(path)

    def connect(*, read_only: bool) -> Database:
        open_file = open_for_reading if read_only else open_for_writing
        db = open_file(path, busy_timeout_s=busy_timeout_s, vfs=vfs)
        if driver == "sqlite-vec" and (problem := load_sqlite_vec(db, extension_path)):
            db.close()
            raise StoreError(f"sqlite-vec can no longer be loaded: {problem}")
        return db

    driver: VectorDriver | None = None  # known once the tables are
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
    """Open an empty index that is gone when it is closed; for one thread."""
    name = f"notewell-{uuid4().hex}"
    first = connect_in_memory(name)
    driver, _ = prepare_tables(first, "segments", create=True, read_only=False)
    pool = ConnectionPool(lambda read_only: connect_in_memory(name), first, first_writes=True)  # noqa: ARG005
    return SqliteStore(Path(name), pool, read_only=False, vector_driver=driver)


class SqliteStore:
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
        self._notes = notes
        self._pool = pool
        self._read_only = read_only
        self._index: VectorIndex | None = None
        self._search: VectorSearch | None = None
        self._chunks_written = 0  # since the keyword segments were last merged by this object

    @property
    def read_only(self) -> bool:
        return self._read_only

    def reading(self) -> AbstractContextManager[SqliteSnapshot]:
        return self.reading_within(EVERYTHING)

    @property
    def notes(self) -> tuple[str, ...]:
        return self._notes

    @contextmanager
    def reading_within(self, scope: Scope) -> Iterator[SqliteSnapshot]:
        with self._pool.reader() as db:
            db.rows("BEGIN")
            self._agree_on_driver(db, writing=False)  # a deferred transaction starts with its first read
            snapshot = SqliteSnapshot(db, self._vector_search, scope)
            try:
                with suspecting_corruption(db):
                    yield snapshot
            finally:
                snapshot.end()

    def write_meta(self, values: Mapping[str, str]) -> None:
        with self._writing() as db:
            db.run_many("INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)", values.items())

    def put_document(
        self, document: StoredDocument, chunks: Sequence[PreparedChunk], vectors: Mapping[str, Vector]
    ) -> None:
        with self._writing() as db:
            key, is_new = rows.put_document_row(db, document)
            changes = plan_chunks([] if is_new else rows.stored_rows(db, key), chunks)
            self._remove_chunks(db, changes.removed)
            rows.move_chunks(db, changes)
            self._insert_chunks(db, document.stamp.source, key, changes.added, vectors)
            _count(db, documents=int(is_new))

    def append_document(
        self,
        document: StoredDocument,
        chunks: Sequence[PreparedChunk],
        vectors: Mapping[str, Vector],
        *,
        cursor: str,
    ) -> None:
        with self._writing() as db:
            key, is_new = rows.put_document_row(db, document)
            self._insert_chunks(db, document.stamp.source, key, chunks, vectors)
            rows.put_cursor(db, key, cursor)
            _count(db, documents=int(is_new))

    @contextmanager
    def rewriting(self, source: SourceName, path: str) -> Iterator[rows.SqliteRewrite]:
        with self._writing() as db:
            rewrite = rows.SqliteRewrite(db, source, path, insert=self._insert_chunks, remove=self._remove_chunks)
            yield rewrite
            if not rewrite.complete:
                raise StoreError("only part of a document was rewritten", hint="run `notewell index` again")
            _count(db, documents=int(rewrite.is_new))

    @contextmanager
    def together(self) -> Iterator[None]:
        with self._writing():
            yield

    def touch_documents(self, documents: Iterable[StoredDocument]) -> None:
        touched = list(documents)
        if touched:
            with self._writing() as db:
                rows.touch_document_rows(db, touched)

    def remove_documents(self, source: SourceName, paths: Collection[str]) -> None:
        if not paths:
            return
        with self._writing() as db:
            keys = rows.document_keys(db, source, paths)
            self._remove_chunks(db, rows.chunk_ids_of(db, keys))
            rows.delete_document_rows(db, keys)
            _count(db, documents=-len(keys))

    def set_embedder(self, identity: EmbedderIdentity, quantization: Quantization) -> None:
        with self._pool.reader() as db:
            if stored_embedder(db) == identity and _meta(db, "quantization") == quantization:
                return
        with self._writing() as db:
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
        with self._writing() as db:
            by_source: defaultdict[SourceName, dict[int, Vector]] = defaultdict(dict)
            replaced = []
            for chunk_id, source, has_vector in db.rows(
                "SELECT chunks.id, source, has_vector FROM chunks JOIN documents ON documents.id = document_id"
                " WHERE chunks.id IN (SELECT value FROM json_each(?)) ORDER BY chunks.id",
                (as_json(vectors),),
            ):
                by_source[source][chunk_id] = vectors[chunk_id]
                if has_vector == EMBEDDED:
                    replaced.append(chunk_id)
            self._remove_vectors(db, replaced)
            self._add_vectors(db, by_source)

    def skip_vectors(self, chunk_ids: Collection[int]) -> None:
        if chunk_ids:
            with self._writing() as db:
                db.rows(
                    "UPDATE chunks SET has_vector = ? WHERE has_vector = ? AND id IN (SELECT value FROM json_each(?))",
                    (SKIPPED, PENDING, as_json(chunk_ids)),
                )

    def optimize(self) -> None:
        with self._writing() as db:
            if db.value("SELECT vectors FROM totals"):
                self._vector_index().tidy(db)
            if self._chunks_written * _MERGE_SHARE > db.value("SELECT chunks FROM totals"):
                db.rows("INSERT INTO terms (terms) VALUES ('optimize')")
            else:
                db.rows("INSERT INTO terms (terms, rank) VALUES ('merge', ?)", (_MERGED_PAGES,))
        self._chunks_written = 0
        with self._pool.writer() as db:
            free, pages = db.value("PRAGMA freelist_count"), db.value("PRAGMA page_count")
            if free > _FREE_PAGES and free * _FREE_SHARE > pages:
                db.rows("VACUUM")
            db.rows("PRAGMA wal_checkpoint(PASSIVE)")

    def erase_deleted(self) -> None:
        """Rewrite the file so that nothing of removed documents is left in it, not even in free pages."""
        with self._writing() as db:
            db.rows("INSERT INTO terms (terms) VALUES ('optimize')")  # deleted terms stay listed until a merge
            if db.value("SELECT vectors FROM totals"):
                self._vector_index().rebuild(db)  # freed slots keep their codes, and the codec the mean of all
        with self._pool.writer() as db:
            db.rewrite_file()

    def embedded_hashes(self) -> set[str]:
        """Return the hash of the embedded text of every chunk."""
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
    def _writing(self) -> Iterator[Database]:
        if self._read_only:
            raise IndexReadOnlyError(
                f"{self.path} is open for reading only", hint="check the permissions of the folder that holds the index"
            )
        with self._pool.writer() as db, suspecting_corruption(db), db.joined_transaction():
            self._agree_on_driver(db, writing=True)
            yield db

    def _agree_on_driver(self, db: Database, *, writing: bool) -> None:
        """Use the vector index that the file is kept with: another process may have switched it since it was opened.

        Where one of two processes cannot load sqlite-vec, segments win.
        """
        recorded = _meta(db, "vector_driver")
        if recorded == self.vector_driver or recorded is None:
            return
        if recorded == "segments":
            self.vector_driver, self._index, self._search = "segments", None, None
        elif writing:
            switch_driver(db, "sqlite-vec", "segments")

    def _vector_index(self) -> VectorIndex:
        if self._index is None:
            self._index = open_vector_index(self.vector_driver)
        return self._index

    def _vector_search(self) -> VectorSearch:
        if self._search is None:
            from notewell.store.sqlite.vector_search import VectorSearch

            self._search = VectorSearch(self._vector_index())
        return self._search

    def _insert_chunks(
        self,
        db: Database,
        source: SourceName,
        document_id: int,
        added: Sequence[PreparedChunk],
        vectors: Mapping[str, Vector],
    ) -> None:
        ids = rows.insert_chunks(db, document_id, added)
        _count(db, chunks=len(ids))
        self._chunks_written += len(ids)
        known = {
            chunk_id: vectors[new.chunk.embedded_hash]
            for chunk_id, new in zip(ids, added, strict=True)
            if new.chunk.embedded_hash in vectors
        }
        if known:
            self._add_vectors(db, {source: known})

    def _remove_chunks(self, db: Database, chunk_ids: Sequence[int]) -> None:
        if chunk_ids:
            self._remove_vectors(db, chunk_ids)
            rows.delete_chunks(db, chunk_ids)
            _count(db, chunks=-len(chunk_ids))
            self._chunks_written += len(chunk_ids)

    def _add_vectors(self, db: Database, by_source: Mapping[SourceName, Mapping[int, Vector]]) -> None:
        identity = stored_embedder(db)
        if identity is None:
            raise StoreError("no embedder is set, so no vectors can be stored", hint="call set_embedder first")
        from notewell.store.vectors import checked_matrix, pack

        for source, vectors in by_source.items():
            ids = list(vectors)
            matrix = checked_matrix(vectors.values(), identity.dimensions)
            db.run_many("INSERT INTO vectors (chunk_id, embedding) VALUES (?, ?)", zip(ids, pack(matrix), strict=True))
            db.rows(
                "UPDATE chunks SET has_vector = ? WHERE id IN (SELECT value FROM json_each(?))",
                (EMBEDDED, as_json(ids)),
            )
            _count(db, vectors=len(ids))
            self._vector_index().add(db, source, ids, matrix)

    def _remove_vectors(self, db: Database, chunk_ids: Collection[int]) -> None:
        gone = db.rows(
            "DELETE FROM vectors WHERE chunk_id IN (SELECT value FROM json_each(?)) RETURNING chunk_id",
            (as_json(chunk_ids),),
        )
        if gone:
            _count(db, vectors=-len(gone))
            self._vector_index().remove(db, [chunk_id for (chunk_id,) in gone])


def _count(db: Database, *, documents: int = 0, chunks: int = 0, vectors: int = 0) -> None:
    """Keep the totals, and give changed vectors a new generation before their index is touched."""
    db.rows(
        "UPDATE totals SET documents = documents + ?1, chunks = chunks + ?2, vectors = vectors + ?3,"
        " vector_generation = vector_generation + (?3 <> 0) WHERE id = 1",
        (documents, chunks, vectors),
    )


def _meta(db: Database, key: str) -> str | None:
    value: str | None = db.value("SELECT value FROM meta WHERE key = ?", (key,))
    return value
