"""Opens index files: a path and what is asked of it come in, a store on a checked, current file goes out."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import cast
from uuid import uuid4

from notewell.errors import IndexCorruptError, IndexReadOnlyError, StoreError
from notewell.store.sqlite.connection import REBUILD_HINT, Database, connect_in_memory, damaged
from notewell.store.sqlite.files import BUSY_TIMEOUT_S, create_empty, open_for_reading, open_for_writing
from notewell.store.sqlite.pool import ConnectionPool
from notewell.store.sqlite.schema import MIGRATIONS, check_ours, is_empty, migrate
from notewell.store.sqlite.store import SqliteStore
from notewell.store.sqlite.vectors import VECTOR_DRIVERS, VectorDriver, open_vector_index
from notewell.store.sqlite.vectors.extension import load_sqlite_vec


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

    Raises FileNotFoundError when there is none and none is to be created, IndexCorruptError when the file is damaged or
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

    def open_bare(*, read_only: bool) -> Database:
        open_file = open_for_reading if read_only else open_for_writing
        return open_file(path, busy_timeout_s=busy_timeout_s, vfs=vfs)

    first = open_bare(read_only=read_only)
    try:
        driver = _ready_for_use(
            first,
            cast("VectorDriver", vector_driver),
            create=create,
            read_only=read_only,
            extension_path=extension_path,
        )
    except BaseException:
        first.close()
        raise

    def open_connection(*, read_only: bool) -> Database:
        db = open_bare(read_only=read_only)
        if driver == "sqlite-vec":
            load_sqlite_vec(db, extension_path)
        return db

    pool = ConnectionPool(open_connection, first, first_writes=not read_only)
    return SqliteStore(path, pool, read_only=read_only, vector_driver=driver)


def open_in_memory() -> SqliteStore:
    """Open an empty index that is gone when it is closed; for one thread."""
    name = f"notewell-{uuid4().hex}"
    first = connect_in_memory(name)
    driver = _ready_for_use(first, "segments", create=True, read_only=False, extension_path="")

    def open_connection(*, read_only: bool) -> Database:  # noqa: ARG001 - every one may write
        return connect_in_memory(name)

    pool = ConnectionPool(open_connection, first, first_writes=True)
    return SqliteStore(Path(name), pool, read_only=False, vector_driver=driver)


def _ready_for_use(
    db: Database, driver: VectorDriver, *, create: bool, read_only: bool, extension_path: str
) -> VectorDriver:
    """Create, check or upgrade the tables; return the driver the file is kept with from now on."""
    if is_empty(db):
        if read_only or not create:
            raise IndexCorruptError(f"{db.path} is empty", hint=REBUILD_HINT, path=db.path)
        db.rows("PRAGMA journal_mode = WAL")
        migrate(db)
    version = check_ours(db)
    if not read_only and db.file_is_read_only:
        raise IndexReadOnlyError(
            f"{db.path} may not be written", hint="check the permissions of the file and its folder"
        )
    if version < len(MIGRATIONS):
        if read_only:
            raise IndexReadOnlyError(
                f"{db.path} was written by an older release and must be upgraded first",
                hint="run `notewell index` once where the index may be written",
            )
        migrate(db)
    recorded: VectorDriver | None = db.value("SELECT value FROM meta WHERE key = 'vector_driver'")
    if recorded is not None and recorded not in VECTOR_DRIVERS:
        raise damaged(db.path, "the record of its vector driver")
    if read_only:
        driver = recorded or driver
    if "sqlite-vec" in {recorded, driver}:
        load_sqlite_vec(db, extension_path)  # also to drop its table
    if recorded != driver and not read_only:
        _switch_driver(db, recorded, driver)
    return driver


def _switch_driver(db: Database, recorded: VectorDriver | None, driver: VectorDriver) -> None:
    with db.transaction():
        if db.value("SELECT vectors FROM totals"):
            if recorded is not None:
                open_vector_index(recorded).clear(db)
            open_vector_index(driver).rebuild(db)
        db.rows("INSERT OR REPLACE INTO meta (key, value) VALUES ('vector_driver', ?)", (driver,))
