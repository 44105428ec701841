"""A server that restarts, cuts connections, times out, fills its disk or is a replica: an error or a retry, no loss."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import psycopg
import pytest

from notewell import DiskFullError, Memory, StoreError, StoreUnavailableError
from notewell.store.postgres import open_store
from notewell.testing.samples import chunks_of, document
from tests.postgres_server import free_port, own_server, shared_server, standby_of

pytestmark = pytest.mark.slow


def wait_for(condition, seconds=20.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.05)


def cut_all(server, database="memory"):
    server.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s AND pid <> pg_backend_pid()",
        database,
    )


def test_a_restart_between_two_searches_is_not_noticed(workspace):
    with own_server() as server:
        url = server.create_database("memory")
        with Memory.open(workspace, provider="hashing", store__url=url) as memory:
            memory.index()
            before = memory.search("printer address").hits
            server.stop()
            server.start()
            assert memory.search("printer address").hits == before
            server.kill()
            server.start()
            assert memory.search("printer address").hits == before
            (workspace / "memory" / "new.md").write_text("A walrus came by.\n")
            server.kill()
            server.start()
            assert memory.index().added == 1
            assert memory.verify().findings == ()


def test_a_search_waits_for_a_server_that_comes_back(workspace):
    with own_server() as server:
        url = server.create_database("memory")
        with Memory.open(workspace, provider="none", store__url=url) as memory:
            memory.index()
            server.kill()
            back = threading.Timer(1.0, server.start)
            back.start()
            assert memory.search("printer", sync=False).hits
            back.join()


def test_a_server_that_stays_away_is_an_error_in_time(workspace, monkeypatch):
    from notewell.store.postgres import connection

    with own_server() as server:
        url = server.create_database("memory")
        with Memory.open(workspace, provider="none", store__url=url) as memory:
            memory.index()
            server.kill()
            monkeypatch.setattr(connection, "REACH_LIMIT_S", 0.5)
            with pytest.raises(StoreUnavailableError, match="cannot reach"):
                memory.search("printer")
            with pytest.raises(StoreUnavailableError, match="cannot reach"):
                memory.index()


def test_a_connection_that_is_cut_in_mid_transaction_leaves_no_half_document(server, url, name):
    store = open_store(url, name)
    store.put_document(document("memory/before.md"), chunks_of("before"), {})

    def write():
        with store.together():
            store.put_document(document("memory/a.md"), chunks_of("one", "two"), {})
            cut_all(server)
            store.put_document(document("memory/b.md"), chunks_of("three"), {})

    with pytest.raises(StoreUnavailableError):
        write()
    with store.reading() as snapshot:
        assert [path for _, path in snapshot.documents()] == ["memory/before.md"]
    assert store.verify() == []
    store.put_document(document("memory/a.md"), chunks_of("one", "two"), {})
    assert store.verify() == []
    store.close()


def test_an_index_run_goes_on_after_connections_are_cut(example, server, url):
    with Memory.open(example, provider="hashing", store__url=url) as memory:
        cuts = []

        def progress(step):
            if step.done in {10, 30} and step not in cuts:
                cuts.append(step)
                cut_all(server)

        report = memory.index(progress=progress)
        assert cuts
        assert report.complete
        assert memory.verify().findings == ()
        assert memory.status().files == 47


def test_a_search_is_tried_again_when_its_connection_is_cut(workspace, server, url):
    with Memory.open(workspace, provider="hashing", store__url=url) as memory:
        expected = memory.search("printer address").hits
        stop = threading.Event()

        def cut():
            while not stop.is_set():
                cut_all(server)
                time.sleep(0.3)

        thread = threading.Thread(target=cut)
        thread.start()
        try:
            for _ in range(20):
                assert memory.search("printer address", sync=False).hits == expected
        finally:
            stop.set()
            thread.join()


def test_a_statement_timeout_says_so(workspace, server, name):
    url = server.create_database(name, owner=name)
    store = open_store(url, "a")
    server.execute(f"ALTER ROLE {name} SET statement_timeout = '50ms'")
    store._tenant.connections.close()
    with store.reading() as snapshot, pytest.raises(StoreUnavailableError, match="statement timeout") as caught:
        snapshot._db.rows("SELECT pg_sleep(1)")
    assert "statement_timeout" in caught.value.hint
    store.close()


# --- full disks -----------------------------------------------------------------------------------------

LONG = " ".join(f"word{n} {'x' * 40}{n}" for n in range(3000))


def fill(store):
    """Write documents until one fails, and return its number and the error."""
    for number in range(2000):
        try:
            with store.together():
                store.put_document(document(f"memory/{number}.md"), chunks_of("first", f"{LONG} {number}"), {})
                store.put_document(document(f"memory/{number}-more.md"), chunks_of(f"{LONG} {number}"), {})
        except StoreError as error:
            return number, error
    raise AssertionError("the disk is not full")


def check_whole(store, written):
    """Raise unless exactly the documents that were confirmed are there."""
    expected = {f"memory/{number}{more}.md" for number in range(written) for more in ("", "-more")}
    with store.reading() as snapshot:
        assert {path for _, path in snapshot.documents()} == expected
    assert store.verify() == []


def go_on(store, written):
    """Write what could not be written, and more."""
    for number in range(written, written + 3):
        for more in ("", "-more"):
            store.put_document(document(f"memory/{number}{more}.md"), chunks_of(f"{LONG} {number}"), {})
    check_whole(store, written + 3)


def test_a_full_disk_loses_nothing():
    with own_server(settings=("max_wal_size=64MB", "wal_recycle=off"), largest_file=17 * 2**20) as server:
        store = open_store(server.create_database("memory"), "a")
        written, error = fill(store)
        assert written
        assert isinstance(error, DiskFullError), error
        assert "no room" in error.hint
        check_whole(store, written)
        server.stop()
        server.largest_file = None  # there is room again
        server.start()
        go_on(store, written)
        store.close()


@pytest.fixture
def small_disk():
    """Mount a small disk of its own, and return it with what makes it larger."""
    if not sys.platform.startswith("linux") or os.geteuid() != 0:
        pytest.skip("only root on Linux can mount a small disk")
    folder = Path(tempfile.mkdtemp(prefix="notewell-disk-"))
    mount = ["mount", "-t", "tmpfs", "-o", "size=120m,mode=755", "tmpfs", folder]
    done = subprocess.run(mount, check=False, capture_output=True, text=True)
    if done.returncode:
        folder.rmdir()
        pytest.skip(f"no disk can be mounted here: {done.stderr.strip()}")
    folder.chmod(0o755)  # the server runs as another user

    yield folder, lambda: subprocess.run(["mount", "-o", "remount,size=400m", folder], check=True)
    subprocess.run(["umount", "-l", folder], check=True)
    folder.rmdir()


@pytest.mark.parametrize(
    "settings",
    [
        pytest.param(("max_wal_size=32MB", "min_wal_size=32MB"), id="a short log"),
        pytest.param(("max_wal_size=4GB", "checkpoint_timeout=1h"), id="a long log"),
    ],
)
def test_a_small_disk_that_fills_up_loses_nothing(small_disk, settings):
    folder, enlarge = small_disk
    with own_server(settings=settings, disk=folder) as server:
        store = open_store(server.create_database("memory"), "a")
        written, error = fill(store)
        assert written
        # A server without room for its log ends itself: then all that a client sees is a connection that was cut.
        assert isinstance(error, (DiskFullError, StoreUnavailableError)), error
        assert error.hint
        enlarge()
        server.start()
        check_whole(store, written)
        go_on(store, written)
        store.close()


# --- replicas ------------------------------------------------------------------------------------------


def test_a_replica_answers_and_says_how_stale_it_may_be(workspace, monkeypatch):
    from notewell.store.postgres import connection

    with own_server() as primary:
        url = primary.create_database("memory")
        with standby_of(primary) as replica:
            read_url = replica.url("memory", "keeper")
            options = {"provider": "hashing", "store__url": url, "store__read_url": read_url}
            with Memory.open(workspace, **options) as memory:
                memory.index()
                deadline = time.monotonic() + 20
                answer = memory.search("printer address")
                while not answer.hits and time.monotonic() < deadline:
                    time.sleep(0.1)
                    answer = memory.search("printer address")
                assert answer.hits[0].path == "memory/network.md"
                assert [note for note in answer.notes if "replica" in note]
                replica.execute("SELECT pg_wal_replay_pause()")
                (workspace / "memory" / "new.md").write_text("A walrus came by.\n")
                memory.index()
                time.sleep(1.2)
                answer = memory.search("walrus")
                assert answer.hits == ()
                assert [note for note in answer.notes if "may miss changes of the last" in note], answer.notes
                replica.execute("SELECT pg_wal_replay_resume()")
                while not (answer := memory.search("walrus")).hits and time.monotonic() < deadline:
                    time.sleep(0.1)
                assert answer.hits
                monkeypatch.setattr(connection, "REACH_LIMIT_S", 0.5)
                primary.kill()  # then searching goes on, and says what is missing
                answer = memory.search("walrus")
                assert answer.hits
                assert [note for note in answer.notes if "new notes are not indexed" in note]


@pytest.mark.parametrize(
    ("on_primary", "reason"),
    [
        pytest.param(
            ["UPDATE notewell.generations SET changed_at = now()", "VACUUM notewell.generations"],
            "confl_snapshot",
            id="rows that are vacuumed away",
        ),
        pytest.param(["VACUUM FULL notewell.generations"], "confl_lock", id="a table that is locked"),
    ],
)
def test_a_query_that_a_replica_cancels_is_tried_again(workspace, monkeypatch, on_primary, reason):
    from notewell.store.postgres import snapshot

    conflicts = f"SELECT {reason} FROM pg_stat_database_conflicts WHERE datname = 'memory'"
    with own_server() as primary:
        url = primary.create_database("memory")
        with standby_of(primary, settings=("max_standby_streaming_delay=0",)) as replica:
            options = {"provider": "none", "store__url": url, "store__read_url": replica.url("memory", "keeper")}
            with Memory.open(workspace, **options) as memory:
                memory.index()
                primary.execute("CHECKPOINT")
                wait_for(lambda: memory.search("printer", sync=False).hits)
                expected = memory.search("printer", sync=False).hits
                cancelled = []
                ask = snapshot.PostgresSnapshot.keyword_matches

                def ask_a_little_later(self, *args, **options):
                    """Let the primary do what the snapshot on the replica stands in the way of."""
                    if len(cancelled) < 2:
                        for statement in on_primary:
                            primary.execute(statement, database="memory")
                        wait_for(lambda: replica.execute(conflicts) > [(len(cancelled),)])
                        cancelled.append(statement)
                    return ask(self, *args, **options)

                monkeypatch.setattr(snapshot.PostgresSnapshot, "keyword_matches", ask_a_little_later)
                assert memory.search("printer", sync=False).hits == expected
                assert len(cancelled) == 2


# --- poolers ----------------------------------------------------------------------------------------------


@pytest.fixture
def pgbouncer(server, url):
    """Start pgbouncer in front of the shared server, in a pool mode."""
    program = shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin")
    if program is None:
        pytest.skip("pgbouncer is not installed")
    processes = []
    folder = Path(tempfile.mkdtemp(prefix="notewell-pgbouncer-"))
    folder.chmod(0o777)  # it does not run as root either

    def start(mode):
        port = free_port()
        settings = {
            "listen_addr": "127.0.0.1",
            "listen_port": port,
            "auth_type": "any",
            "pool_mode": mode,
            "default_pool_size": 4,
            "unix_socket_dir": "",
            "logfile": folder / "log",
        }
        lines = [f"{key} = {value}" for key, value in settings.items()]
        database = f"memory = host=127.0.0.1 port={server.port} dbname=memory user=keeper"
        file = folder / "pgbouncer.ini"
        file.write_text("\n".join(["[databases]", database, "[pgbouncer]", *lines, ""]))
        file.chmod(0o644)
        user = "nobody" if os.geteuid() == 0 else None
        processes.append(subprocess.Popen([program, "-q", str(file)], user=user, cwd="/"))
        there = f"postgresql://keeper@127.0.0.1:{port}/memory"
        for _ in range(100):
            try:
                psycopg.connect(there, connect_timeout=2).close()
                break
            except psycopg.OperationalError:
                time.sleep(0.05)
        return there

    yield start
    for process in processes:
        process.terminate()
        process.wait(timeout=10)
    shutil.rmtree(folder, ignore_errors=True)


def test_everything_works_behind_a_transaction_pooler(pgbouncer, example):
    url = pgbouncer("transaction")
    with Memory.open(example, provider="hashing", store__url=url) as memory:
        assert memory.index().added == 47
        problems = []

        def search():
            try:
                for _ in range(10):
                    assert memory.search("boiler").hits
            except Exception as error:  # noqa: BLE001
                problems.append(error)

        threads = [threading.Thread(target=search) for _ in range(6)]
        for thread in threads:
            thread.start()
        house = example / "memory" / "house.md"
        house.write_text(house.read_text(encoding="utf-8") + "\nOne more line.\n", encoding="utf-8")
        assert memory.index().complete  # one of the searches may have indexed the line
        for thread in threads:
            thread.join()
        assert problems == []
        assert memory.index(force=True).rebuilt
        assert memory.verify().findings == ()
        assert any("behind a pooler" in check.detail for check in memory.doctor())


def test_a_statement_pooler_is_refused_with_the_reason(pgbouncer, workspace):
    from notewell import StoreError

    url = pgbouncer("statement")
    with Memory.open(workspace, provider="none", store__url=url) as memory:
        with pytest.raises(StoreError) as caught:
            memory.index()
        assert "pool_mode" in caught.value.hint, caught.value


def test_the_shared_server_is_one(server):
    assert shared_server() is server
