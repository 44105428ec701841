"""Manages the indexes of one tenant in the database: claims, names, switches and locks them."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

from notewell.errors import (
    IndexBusyError,
    IndexReadOnlyError,
    StoreError,
    StoreUnavailableError,
    TenantClaimedError,
    as_store_errors,
    store_error,
)
from notewell.files.atomic import write_atomically
from notewell.files.no_follow import open_regular
from notewell.store.postgres.connection import WRITING, Connections, Prepared
from notewell.store.postgres.schema import LOCK_CLASS, TENANT_TABLES, Server, prepare_schema
from notewell.types import Check

if TYPE_CHECKING:
    from notewell.store.postgres.connection import Database

_OF_GENERATIONS = [table for table in TENANT_TABLES if not table.startswith("cache_")]
_LONGEST_SLEEP_S = 0.5  # between two attempts to take the lock
_GENERATION = "generation-"
_NO_IDLE_TIMEOUT = "SET LOCAL idle_in_transaction_session_timeout = 0"
_CURRENT = (
    "SELECT t.generation, EXISTS (SELECT FROM notewell.generations g WHERE g.tenant = $1"
    " AND g.generation IS DISTINCT FROM t.generation) FROM notewell.tenants t WHERE t.id = $1"
)
_WRITER = "SELECT writer FROM notewell.tenants WHERE id = $1 FOR SHARE"
# With a clock, because a standby may have missed that a number was used.
_NEXT_WRITER = (
    "UPDATE notewell.tenants SET writer = greatest(writer + 1, (extract(epoch FROM clock_timestamp()) * 1e6)::bigint)"
    " WHERE id = $1 RETURNING writer"
)
_PROGRESS = (
    "SELECT max(vector_generation + last_chunk + postings_generation)::text || max(changed_at)::text"
    " FROM notewell.generations WHERE tenant = %s"
)
_ID = re.compile(r"[\w.-]{8,64}")
_MOST_READ = 1_000  # bytes of its file


class WorkspaceId:
    """The id of a workspace, in a file in it; it identifies the owner of a tenant independent of the path."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._known = ""

    def read(self) -> str:
        """Return the id; empty if there is none."""
        if not self._known:
            try:
                with open_regular(self._file) as file:
                    self._known = file.read(_MOST_READ).decode("utf-8", "replace").strip()
            except (FileNotFoundError, NotADirectoryError):
                return ""
            except OSError as error:
                raise store_error(error, self._file) from error
            if not _ID.fullmatch(self._known):
                found, self._known = self._known, ""
                raise StoreError(f"{self._file} holds no id: {found[:80]!r}", hint="delete the file, or restore it")
        return self._known

    def created(self) -> str:
        """Return the id, creating it if there is none."""
        if not self.read():
            with as_store_errors(self._file), suppress(FileExistsError):  # another process was faster
                self._file.parent.mkdir(parents=True, exist_ok=True)
                ignored = self._file.with_name(".gitignore")
                if not ignored.exists():
                    ignored.write_text("*\n", encoding="utf-8")
                write_atomically(self._file, f"{uuid4().hex}\n", draft_prefix=f"{self._file.name}.", overwrite=False)
        return self.read()


class FixedId(WorkspaceId):
    """An id that the program provides."""

    def __init__(self, workspace_id: str) -> None:
        super().__init__(Path())
        self._known = workspace_id


class Tenant:
    """Implements `Generations` for one workspace and agent in a database; the path of one is `generation-3`.

    Nothing is read or written before the first use. The default `name` is the id of the workspace.
    """

    leftovers = (
        "the database keeps bytes of what was forgotten until an administrator acts: in dead rows (run VACUUM FULL on"
        " the tables of the schema notewell), in the write-ahead log and its archive, on replicas, and in base backups"
    )

    def __init__(
        self,
        connections: Connections,
        *,
        name: str = "",
        agent: str,
        workspace_id: WorkspaceId,
        follow: bool = False,
    ) -> None:
        self.connections = connections
        self.agent = agent
        self.follow = follow
        self._name = name
        self._workspace_id = workspace_id
        self._server: Server | None = None
        self._id: int | None = None
        self._is_ours = False  # the tenant is known to belong to this workspace
        self._has_others = True  # other generations than the current one, when last checked
        self._writer: int | None = None  # the writer number of this process, while it holds the lock

    # --- who and where ---------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """The name of the tenant; empty if the workspace has no id yet."""
        return self._name or self._workspace_id.read()

    @property
    def shown(self) -> str:
        """Where the index is, for messages, without a password."""
        return f"{self.connections.secrets.shown} (tenant {self.name or 'not named yet'})"

    def checks(self) -> Iterator[Check]:
        """Yield the checks of `doctor` on the server and this tenant."""
        try:
            server = self.server()
        except StoreError as error:
            yield Check("database", False, error.message, error.hint, unusable=True)
            return
        version, pooler = server.version // 10_000, ", behind a pooler" if self.connections.pooled_by_server else ""
        standby = ", a standby" if server.is_standby else ""
        yield Check(
            "database", True, f"{self.shown}: PostgreSQL {version}, pgvector {server.pgvector}{standby}{pooler}"
        )
        if server.bypasses:
            detail = f"row-level security does not hold for the role {server.role}: it may read every tenant"
            yield Check("tenants", False, detail, "use a role that is no superuser and has no BYPASSRLS")
        else:
            yield Check("tenants", True, f"row-level security holds for the role {server.role}")

    def server(self, *, create: bool = False) -> Server:
        """Return the facts about the server, which is checked once."""
        if self._server is None:
            self._server = prepare_schema(self.connections, create=create)
        return self._server

    def number(self) -> int | None:
        """Return the number of the tenant; None if it does not exist."""
        if self._id is None:
            if not self.name:
                return None
            try:
                self.server()
            except StoreError as error:
                if "holds no tables" in error.message:
                    return None
                raise
            with self.connections.transaction("BEGIN READ ONLY") as db:
                self._id = self._found(db)
        return self._id

    def _own_number(self) -> int:
        """Return the number of the tenant, creating it if necessary."""
        if self.number() is None:
            self.ensure()
        number = self.number()
        assert number is not None
        return number

    def _found(self, db: Database) -> int | None:
        db.rows("SELECT set_config('notewell.tenant_name', %s, true)", (self.name,))
        found: int | None = db.value(
            "SELECT id FROM notewell.tenants WHERE name = %s AND agent = %s", (self.name, self.agent)
        )
        return found

    def forget_number(self) -> None:
        """Look the tenant up again at its next use, because it was dropped."""
        self._id, self._is_ours = None, False

    def as_set(self) -> str:
        """Return the statement that sets the tenant of a transaction."""
        return f"SELECT set_config('notewell.tenant', '{self.number()}', true)"

    def writable(self) -> bool:
        return not self.follow

    def read_only_error(self) -> IndexReadOnlyError:
        return IndexReadOnlyError(
            f"this memory only follows the tenant {self.name} (store.follow = true): nothing is written from here",
            hint="write on a machine that holds the notes; it indexes them for all",
        )

    def agents(self) -> list[str]:
        if self.number() is None:
            return []
        with self.connections.transaction("BEGIN READ ONLY") as db:
            db.rows("SELECT set_config('notewell.tenant_name', %s, true)", (self.name,))
            found = db.rows(
                "SELECT agent FROM notewell.tenants WHERE name = %s AND generation IS NOT NULL ORDER BY agent",
                (self.name,),
            )
        return [agent for (agent,) in found]

    def ensure(self) -> None:
        """Create missing tables and the tenant; raise when it belongs to another workspace."""
        if self.follow:
            raise self.read_only_error()
        if self._is_ours:
            return
        owner_id = self._workspace_id.created()
        self.server(create=True)
        with self.connections.transaction("BEGIN") as db:
            number = self._found(db)
            if number is None:
                db.rows(
                    "INSERT INTO notewell.tenants (name, agent, workspace) VALUES (%s, %s, %s) ON CONFLICT DO NOTHING",
                    (self.name, self.agent, owner_id),
                )
                number = self._found(db)
            if number is None:
                raise StoreError(
                    f"the tenant {self.name} cannot be created: the role is bound to other tenants",
                    hint=f"run as an administrator: SELECT notewell.bind_role('ROLE', '{self.name}', '{self.agent}');",
                )
            owner = db.value("SELECT workspace FROM notewell.tenants WHERE id = %s FOR UPDATE", (number,))
            if not owner:  # prepared by an administrator
                db.rows("UPDATE notewell.tenants SET workspace = %s WHERE id = %s", (owner_id, number))
            elif owner != owner_id:
                raise TenantClaimedError(self.name, owner)
            db.commit()
        self._id, self._is_ours = number, True

    # --- generations -----------------------------------------------------------------------------

    def current(self) -> Path | None:
        number = self.number()
        if number is None:
            return None
        with self.connections.transaction("BEGIN", self.as_set(), Prepared(_CURRENT, (number,)), "COMMIT") as db:
            found = db.begun[-1]
        if not found:
            self.forget_number()
            return None
        generation, self._has_others = found[0]
        return None if generation is None else _path(generation)

    def next_index_path(self) -> Path:
        """Create a generation that no reader sees yet, and return its name."""
        with self.writing() as db:
            number: int = db.value(
                "UPDATE notewell.tenants SET last_generation = last_generation + 1 WHERE id = %s"
                " RETURNING last_generation",
                (self._id,),
            )
            db.rows("INSERT INTO notewell.generations (tenant, generation) VALUES (%s, %s)", (self._id, number))
            db.commit()
        self._has_others = True
        return _path(number)

    def switch_to(self, path: Path) -> None:
        with self.writing() as db:
            db.rows("UPDATE notewell.tenants SET generation = %s WHERE id = %s", (generation_of(path), self._id))
            db.commit()
        self._has_others = True

    def unfinished(self) -> list[Path]:
        current = self.current()
        newest = generation_of(current) if current else 0
        return [_path(number) for number in self._generations() if number > newest]

    def holds(self, path: Path) -> bool:
        return path.name.startswith(_GENERATION) and generation_of(path) in self._generations()

    def set_aside(self, path: Path) -> Path:
        """Take a generation out of use; `remove_superseded` deletes it."""
        with self.writing() as db:
            db.rows(
                "UPDATE notewell.tenants SET generation = NULL WHERE id = %s AND generation = %s",
                (self._id, generation_of(path)),
            )
            db.commit()
        self._has_others = True
        return path

    def remove_superseded(self) -> None:
        """Delete all but the current generation; open snapshots keep theirs."""
        if not self._has_others or self.number() is None:
            return
        with self._reading() as db:
            found = db.rows(
                "SELECT generation FROM notewell.generations WHERE tenant = %s AND generation IS DISTINCT FROM"
                " (SELECT generation FROM notewell.tenants WHERE id = %s)",
                (self._id, self._id),
            )
        for (number,) in found:
            self._delete(number)

    def _delete(self, generation: int) -> None:
        with self.writing() as db:
            for table in _OF_GENERATIONS:
                db.rows(
                    f"DELETE FROM notewell.{table} WHERE tenant = %s AND generation = %s",
                    (self._id, generation),
                )
            db.commit()

    def _generations(self) -> list[int]:
        if self.number() is None:
            return []
        with self._reading() as db:
            found = db.rows(
                "SELECT generation FROM notewell.generations WHERE tenant = %s ORDER BY generation", (self._id,)
            )
        return [number for (number,) in found]

    def check_room_for_rebuild(self) -> None:
        """Do nothing: only the server knows its disks, and raises an error when one is full."""

    # --- one writer ------------------------------------------------------------------------------

    @contextmanager
    def write_lock(self, timeout_s: float, *, give_up: Callable[[], bool] = lambda: False) -> Iterator[None]:
        """Be the only writer of all machines, waiting as long as another one makes progress.

        Raises IndexBusyError when nothing was written for `timeout_s`, or when `give_up` returns true. The lock is held
        by a transaction on a connection of its own, so that it works behind a pooler and ends when the process dies.
        The transaction has no snapshot, so it does not hold back VACUUM.

        A process does not notice that it lost this connection. So every holder has a number, and writes nothing once
        another process has a later one.
        """
        number = self._own_number()
        lock = Prepared(f"SELECT pg_try_advisory_xact_lock({LOCK_CLASS}, $1)", (number,))
        seen, since, sleep_s = "", time.monotonic(), 0.01
        while True:
            # No connection is held while waiting: behind a pooler there may be few, and the writer needs a second one.
            # Read-only, so that it ends with COMMIT: after ROLLBACK all statements are planned again.
            with self.connections.transaction("BEGIN READ ONLY", self.as_set(), _NO_IDLE_TIMEOUT, lock) as db:
                if db.begun[-1] == [(True,)]:
                    self._writer = self._next_writer(number)
                    try:
                        yield
                    finally:
                        self._writer = None
                    return
                progress = str(db.value(_PROGRESS, (number,)))
            if progress != seen:
                seen, since = progress, time.monotonic()
            if give_up() or time.monotonic() - since >= timeout_s:
                raise IndexBusyError(
                    f"another process is indexing into {self.shown}", hint="try again when it has finished"
                )
            time.sleep(sleep_s)
            sleep_s = min(2 * sleep_s, _LONGEST_SLEEP_S)

    def _next_writer(self, tenant: int) -> int | None:
        """Take the next writer number; wait for a write of the previous holder."""
        with self.connections.transaction(WRITING, self.as_set(), Prepared(_NEXT_WRITER, (tenant,)), "COMMIT") as db:
            found = db.begun[-1]
        return found[0][0] if found else None

    # --- transactions ----------------------------------------------------------------------------

    @contextmanager
    def _reading(self, *statements: Prepared) -> Iterator[Database]:
        with self.connections.transaction("BEGIN READ ONLY", self.as_set(), *statements) as db:
            yield db

    @contextmanager
    def writing(self, *statements: Prepared, begin: str = "BEGIN") -> Iterator[Database]:
        """Begin a transaction; raise when the lock was lost to another process."""
        number = self._own_number()
        writer = [] if self._writer is None else [Prepared(_WRITER, (number,))]
        with self.connections.transaction(begin, self.as_set(), *writer, *statements) as db:
            if writer and db.begun[1] != [(self._writer,)]:
                raise StoreUnavailableError(
                    f"{self.shown}: the connection that held the write lock was lost, and another process writes now",
                    hint="try again: nothing of this transaction was written",
                )
            yield db


def _path(generation: int) -> Path:
    return Path(f"{_GENERATION}{generation}")


def generation_of(path: Path) -> int:
    """Return the number in the name of a generation."""
    return int(path.name.removeprefix(_GENERATION))
