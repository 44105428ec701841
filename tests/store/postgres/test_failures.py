"""A server that restarts, cuts connections, times out, fills its disk or is a replica: an error or a retry, no loss."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import threading
import time
from pathlib import Path

import psycopg
import pytest

from notewell import DiskFullError, Memory, StoreUnavailableError
from notewell.store.postgres import open_store
from notewell.testing.samples import chunks_of, document
from tests.postgres_server import free_port, own_server, shared_server, standby_of

pytestmark = pytest.mark.slow


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


def test_a_full_disk_loses_nothing(workspace):
    with own_server(settings=("max_wal_size=64MB", "wal_recycle=off"), largest_file=17 * 2**20) as server:
        url = server.create_database("memory")
        store = open_store(url, "a")
        store.put_document(document("memory/small.md"), chunks_of("small"), {})
        long = " ".join(f"word{n} {'x' * 40}{n}" for n in range(3000))

        def fill():
            for number in range(400):
                store.put_document(document(f"memory/{number}.md"), chunks_of(f"{long} {number}"), {})

        with pytest.raises((DiskFullError, StoreUnavailableError)) as caught:
            fill()
        assert isinstance(caught.value, DiskFullError), caught.value
        assert "no room" in caught.value.hint
        with store.reading() as snapshot:
            assert snapshot.counts().files >= 1
        assert store.verify() == []
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


def test_a_query_that_a_replica_cancels_is_tried_again(workspace, monkeypatch, url):
    from notewell.store.postgres import snapshot

    with Memory.open(workspace, provider="none", store__url=url) as memory:
        memory.index()
        expected = memory.search("printer").hits
        failures = iter([True, True, False])
        ask = snapshot.PostgresSnapshot.keyword_matches

        def cancelled(self, *args, **options):
            if next(failures, False):
                self._db.rows("DO $$ BEGIN RAISE EXCEPTION 'canceling statement' USING ERRCODE = '40001'; END $$")
            return ask(self, *args, **options)

        monkeypatch.setattr(snapshot.PostgresSnapshot, "keyword_matches", cancelled)
        assert memory.search("printer").hits == expected


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
