"""Connects to PostgreSQL and runs statements in transactions."""

from __future__ import annotations

import logging
import os
import re
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from typing import Any, NamedTuple

import numpy as np
import psycopg
from psycopg import pq
from psycopg.abc import Buffer
from psycopg.adapt import Dumper
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg_pool import ConnectionPool, PoolClosed, PoolTimeout

from notewell.errors import IndexBusyError, StoreError
from notewell.files.faults import reach
from notewell.store.postgres.server_errors import Secrets, connect_error, is_lost, may_pass, translated

logging.getLogger("psycopg").addHandler(logging.NullHandler())  # else its warnings go to standard error

Row = tuple[Any, ...]
Bytes = bytes | bytearray | memoryview

REACH_LIMIT_S = 15.0  # a failover to a standby took 3.3 s, a restart after a crash 1.4 s
LOCK_TIMEOUT_S = 30  # for a row lock; a write takes milliseconds, longer means a stuck process
MOST_CONNECTIONS = 16  # per process; further threads wait
_CONNECT_TIMEOUT_S = 5  # unless the URL has one; leaves time for the next host
_LOOK_EVERY_S = 0.2  # how often errors are checked while waiting for a connection
_IDLE_S = 300.0
_PREPARED_AFTER = 2  # uses on one connection: under row-level security planning takes longer than most statements
READING = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
# Whether the server is a replica, has applied all it received, and how many seconds ago it last applied anything.
REPLICA = (
    "SELECT pg_is_in_recovery(), pg_last_wal_receive_lsn() IS NOT DISTINCT FROM pg_last_wal_replay_lsn(),"
    " extract(epoch FROM clock_timestamp() - pg_last_xact_replay_timestamp())::float8"
)
WRITING = f"BEGIN; SET LOCAL lock_timeout = '{LOCK_TIMEOUT_S}s'"


class Connections:
    """A pool of connections to one database; a forked child opens its own."""

    def __init__(self, url: str) -> None:
        self.secrets = Secrets(url)
        if self.secrets.is_cut:
            raise StoreError(
                f"the password for {self.secrets.shown} has a character that must be written as a code",
                hint="write @ as %40, / as %2F and ? as %3F, or set PGPASSWORD",
            )
        try:
            parts = conninfo_to_dict(url)
        except psycopg.Error as error:
            raise StoreError(
                f"store.url is not a PostgreSQL URL: {self.secrets.hide(str(error)).strip()}",
                hint="write it as postgresql://user@host:5432/database",
            ) from None  # the URL is in the message
        parts.setdefault("connect_timeout", str(_CONNECT_TIMEOUT_S))
        parts.setdefault("application_name", "notewell")
        self._conninfo = make_conninfo("", **parts)
        self._lock = threading.Lock()
        self._pool: ConnectionPool[_Connection] | None = None
        self._pid = os.getpid()
        self._failure: psycopg.Error | None = None  # of the latest attempt to connect
        self.pooled_by_server = False  # behind a pooler such as pgbouncer

    def __repr__(self) -> str:
        return f"Connections({self.secrets.shown!r})"

    @contextmanager
    def transaction(self, begin: str, *statements: str | Prepared) -> Iterator[Database]:
        """Lend a connection in a transaction, which is rolled back unless `commit` is called.

        The first statements are sent in one message, and retried with another connection while the database cannot be
        reached.
        """
        connection, results = self._begun((begin, *statements))
        connection.only_reads = "READ ONLY" in begin
        try:
            yield Database(connection, self, results)
        finally:
            self._give_back(connection)

    def _begun(self, statements: Sequence[str | Prepared]) -> tuple[_Connection, list[list[Row]]]:
        until = time.monotonic() + REACH_LIMIT_S
        while True:
            connection = self._connection(until)
            try:
                reach("database.begin")
                sent = filter(None, map(connection.as_sent, statements))
                return connection, connection.run_script("; ".join(sent))
            except psycopg.Error as error:
                lost = is_lost(error, connection)
                self._give_back(connection)
                if not lost or time.monotonic() >= until:
                    raise self.translated(error) from error
                with self._lock:
                    pool = self._pool
                if pool is not None:
                    pool.check()  # its other connections are probably lost, too
                time.sleep(0.05)
            except BaseException:
                self._give_back(connection)
                raise

    def _connection(self, until: float) -> _Connection:
        while True:
            pool = self._current_pool()
            left_s = until - time.monotonic()
            try:
                return self._lent_by(pool, max(0.01, min(_LOOK_EVERY_S, left_s)))
            except PoolClosed:
                continue  # another thread closed it: use the next pool
            except PoolTimeout:
                failure = self._failure
                if failure is not None and (left_s <= 0 or not may_pass(str(failure))):
                    raise connect_error(failure, self.secrets) from None
                if left_s <= 0:
                    raise IndexBusyError(
                        f"all {MOST_CONNECTIONS} connections to {self.secrets.shown} are in use",
                        hint="try again when the searches in progress have finished",
                    ) from None

    def _lent_by(self, pool: ConnectionPool[_Connection], timeout_s: float) -> _Connection:
        connection = pool.getconn(timeout=timeout_s)
        connection.lender = pool
        return connection

    def _give_back(self, connection: _Connection) -> None:
        with self._lock:
            pool = self._pool if self._pid == os.getpid() else None
        if self._pid != os.getpid():
            return  # forked inside the `with` block: the connection is the parent's
        if not connection.closed and connection.info.transaction_status != pq.TransactionStatus.IDLE:
            try:
                connection.end()
            except psycopg.Error:
                connection.close()
        lender = connection.lender
        if lender is not None and lender is pool:
            lender.putconn(connection)
        else:
            connection.close()

    def _current_pool(self) -> ConnectionPool[_Connection]:
        with self._lock:
            if self._pool is None or self._pid != os.getpid():
                if self._pool is not None:
                    _inherited.append(self._pool)  # closing it would close the parent's connections
                self._pid = os.getpid()
                self._pool = ConnectionPool(
                    self._conninfo,
                    connection_class=_Connection,
                    kwargs={"autocommit": True, "owner": self},
                    min_size=0,
                    max_size=MOST_CONNECTIONS,
                    max_idle=_IDLE_S,
                    reconnect_timeout=0,  # retries are ours, with the reason of the failure
                    open=False,
                )
                self._pool.open()
            return self._pool

    def connected(self, error: psycopg.Error | None) -> None:
        """Record the failure or success of a connection attempt, which the pool does not report."""
        self._failure = error

    def close(self) -> None:
        """Close idle connections now and lent ones when they come back; the next use connects again."""
        with self._lock:
            pool, self._pool = self._pool, None
        if pool is not None and self._pid == os.getpid():
            pool.close(timeout=1.0)

    def translated(self, error: psycopg.Error) -> StoreError:
        """Return our error for one of PostgreSQL."""
        return translated(error, self.secrets)


_inherited: list[Any] = []
_names = count()  # of prepared statements


class Prepared(NamedTuple):
    """A statement that is planned once per connection: with row-level security, planning is slower than running."""

    sql: str  # with $1, $2 for the values
    values: tuple[int, ...]
    type: str = "int"  # of the values


class _Connection(psycopg.Connection[Row]):
    """A connection that detects poolers, prepares statements and sends vectors."""

    lender: ConnectionPool[Any] | None = None
    only_reads = False  # the transaction that is open
    is_primary = False  # a primary stays one while connected; a replica may be promoted
    prepared: dict[str, str]  # the names of prepared statements
    nearness = ""  # the operator of pgvector for the negative inner product, whatever schema it is in

    @classmethod
    def connect(cls, conninfo: str = "", *, owner: Connections, **options: Any) -> _Connection:  # type: ignore[override]
        try:
            reach("database.open")
            connection = super().connect(conninfo, **options)
        except psycopg.Error as error:
            owner.connected(error)
            raise
        owner.connected(None)
        connection.prepared = {}
        connection.adapters.register_dumper(ByteArrays, _array_dumper(_BYTEA_ARRAY, _BYTEA))
        connection.adapters.register_dumper(Texts, _array_dumper(_TEXT_ARRAY, _TEXT))
        # A pooler may use another server connection for each transaction, without our prepared statements.
        if connection.execute("SELECT pg_backend_pid()").fetchone() != (connection.info.backend_pid,):
            owner.pooled_by_server = True
            connection.prepare_threshold = None
        else:
            connection.prepare_threshold = _PREPARED_AFTER
            # One plan for all tenants: a tenant without statistics would be planned each time as if it had one row.
            connection.execute("SET plan_cache_mode = force_generic_plan")
        return connection

    def learn_vectors(self) -> None:
        """Look up the type ids of pgvector, which differ between databases."""
        if self.nearness:
            return
        found = self.execute(
            "SELECT quote_ident(n.nspname), t.oid, t.typarray FROM pg_extension e"
            " JOIN pg_namespace n ON n.oid = e.extnamespace JOIN pg_type t ON t.typnamespace = n.oid"
            " WHERE e.extname = 'vector' AND t.typname = 'halfvec'"
        ).fetchone()
        if found is None:
            raise StoreError("the database has no pgvector any more", hint="run: CREATE EXTENSION vector;")
        schema, oid, array_oid = found
        self.adapters.register_dumper(HalfVector, _dumper(oid))
        self.adapters.register_dumper(HalfVectors, _dumper(array_oid, element=oid))
        self.nearness = f"OPERATOR({schema}.<#>)"

    def as_sent(self, statement: str | Prepared) -> str:
        """Return a statement as text; a prepared one as EXECUTE, unless behind a pooler."""
        if statement is REPLICA and self.is_primary:
            return ""
        if isinstance(statement, str):
            return statement
        values = [str(int(value)) for value in statement.values]
        if self.prepare_threshold is None:
            return re.sub(r"\$(\d+)", lambda found: values[int(found[1]) - 1], statement.sql)
        if statement.sql not in self.prepared:
            name = f"notewell_{next(_names)}"
            types = ", ".join([statement.type] * len(values))
            self.execute(f"PREPARE {name} ({types}) AS {statement.sql}", prepare=False)
            self.prepared[statement.sql] = name
        return f"EXECUTE {self.prepared[statement.sql]}({', '.join(values)})"

    def end(self) -> None:
        """End the transaction without writing."""
        # psycopg forgets prepared statements after a rollback, so read-only transactions are committed.
        if self.execute("COMMIT" if self.only_reads else "ROLLBACK", prepare=False).statusmessage != "COMMIT":
            self.prepared = {}

    def run_script(self, script: str) -> list[list[Row]]:
        """Run several statements in one message; return the rows of each query."""
        cursor = self.execute(script, prepare=False)
        results = []
        while True:
            if cursor.description is not None:
                results.append(cursor.fetchall())
            if not cursor.nextset():
                return results


class Database:
    """A transaction on one connection; statements are run to their end, so that errors are raised where they happen."""

    def __init__(self, connection: _Connection, owner: Connections, begun: list[list[Row]]) -> None:
        self._connection = connection
        self._owner = owner
        self.begun = begun  # the rows of the statements that began the transaction

    def rows(self, sql: str, values: Sequence[Any] | dict[str, Any] = ()) -> list[Row]:
        """Run one statement and return all of its rows."""
        try:
            cursor = self._connection.execute(sql, values or None, binary=True)
            return cursor.fetchall() if cursor.description is not None else []
        except psycopg.Error as error:
            raise self._owner.translated(error) from error
        except UnicodeEncodeError as error:
            raise StoreError("a path holds half of a surrogate pair", hint="rename that file") from error

    @property
    def replica(self) -> Row:
        """The row of `REPLICA`, the last of the first statements."""
        if self._connection.is_primary:
            return False, None, None
        found = self.begun[-1][0]
        self._connection.is_primary = not (found[0] or self._owner.pooled_by_server)
        return found

    def value(self, sql: str, values: Sequence[Any] | dict[str, Any] = ()) -> Any:
        """Return the first column of the first row, or None when there is no row."""
        found = self.rows(sql, values)
        return found[0][0] if found else None

    def count(self, sql: str, values: Sequence[Any] | dict[str, Any] = ()) -> int:
        """Run one statement; return the number of changed rows."""
        try:
            return self._connection.execute(sql, values or None).rowcount
        except psycopg.Error as error:
            raise self._owner.translated(error) from error

    def script(self, statements: str) -> None:
        """Run several statements without values."""
        try:
            self._connection.run_script(statements)
        except psycopg.Error as error:
            raise self._owner.translated(error) from error

    def learn_vectors(self) -> None:
        """Enable vectors as values on this connection."""
        try:
            self._connection.learn_vectors()
        except psycopg.Error as error:
            raise self._owner.translated(error) from error

    @property
    def nearness(self) -> str:
        """The operator that orders vectors, nearest first; known after `learn_vectors`."""
        return self._connection.nearness

    def commit(self, *statements: Prepared) -> None:
        """Run the last statements and commit, in one message."""
        reach("database.commit")
        try:
            self._connection.run_script("; ".join([*map(self._connection.as_sent, statements), "COMMIT"]))
        except psycopg.Error as error:
            raise self._owner.translated(error) from error


# --- vectors as values ---------------------------------------------------------------------------


class HalfVector:
    """One vector as pgvector's `halfvec`."""

    def __init__(self, vector: np.ndarray[Any, Any]) -> None:
        self.matrix = vector[None, :]


class HalfVectors:
    """The rows of a matrix as an array of pgvector's `halfvec`."""

    def __init__(self, matrix: np.ndarray[Any, Any]) -> None:
        self.matrix = matrix


def _dumper(type_oid: int, element: int = 0) -> type[Dumper]:
    class VectorDumper(Dumper):
        format = pq.Format.BINARY
        oid = type_oid

        def dump(self, obj: HalfVector | HalfVectors) -> Buffer:
            rows, dimensions = obj.matrix.shape
            wire = np.empty((rows, 2 * dimensions + 4), np.uint8)  # how many dimensions, two bytes unused, the numbers
            wire[:, :4] = np.array([dimensions, 0], ">u2").view(np.uint8)
            wire[:, 4:] = np.ascontiguousarray(obj.matrix.astype(">f2")).view(np.uint8)
            if not element:
                return wire.tobytes()
            head = np.array([1, 0, element, rows, 1] if rows else [0, 0, element], ">i4").tobytes()
            sized = np.empty((rows, wire.shape[1] + 4), np.uint8)
            sized[:, :4] = np.array([wire.shape[1]], ">i4").view(np.uint8)
            sized[:, 4:] = wire
            return head + sized.tobytes()

    return VectorDumper


class ByteArrays:
    """Byte strings as one array in binary form; psycopg would escape each as text."""

    def __init__(self, items: Sequence[bytes]) -> None:
        self.items = items


class Texts(ByteArrays):
    """Many texts as one array."""

    def __init__(self, texts: Sequence[str]) -> None:
        super().__init__([text.encode() for text in texts])


def _array_dumper(array_oid: int, element_oid: int) -> type[Dumper]:
    class ArrayDumper(Dumper):
        format = pq.Format.BINARY
        oid = array_oid

        def dump(self, obj: ByteArrays) -> Buffer:
            items = obj.items
            if not items:
                return np.array([0, 0, element_oid], ">i4").tobytes()
            sizes = np.array([len(item) for item in items], ">i4").tobytes()
            parts: list[bytes] = [b""] * (2 * len(items))
            parts[0::2] = [sizes[start : start + 4] for start in range(0, len(sizes), 4)]
            parts[1::2] = items
            return np.array([1, 0, element_oid, len(items), 1], ">i4").tobytes() + b"".join(parts)

    return ArrayDumper


_BYTEA_ARRAY, _BYTEA, _TEXT_ARRAY, _TEXT = 1001, 17, 1009, 25  # the same in every database


def half_rows(values: Sequence[Bytes]) -> np.ndarray[Any, np.dtype[np.float32]]:
    """Return vectors from the server as rows; raise ValueError if their lengths differ."""
    if not values:
        return np.empty((0, 0), np.float32)
    wire = np.frombuffer(b"".join(values), np.uint8).reshape(len(values), -1)
    return np.ascontiguousarray(wire[:, 4:]).view(">f2").astype(np.float32)
