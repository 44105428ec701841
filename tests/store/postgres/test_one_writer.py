"""One process writes a tenant at a time, whatever becomes of the connection that holds its lock; the others read."""

from __future__ import annotations

import subprocess
import sys
import threading
import time

import pytest

from notewell import IndexBusyError, Memory, StoreUnavailableError
from notewell.store.postgres import open_store
from notewell.store.postgres.schema import LOCK_CLASS
from notewell.testing.samples import chunks_of, document

pytestmark = pytest.mark.slow

HOLD = """
import sys, time
from notewell.store.postgres import Connections, FixedId, Tenant
tenant = Tenant(Connections(sys.argv[1]), name=sys.argv[2], agent="main", workspace_id=FixedId("library"))
with tenant.write_lock(5):
    print("locked", flush=True)
    time.sleep(60)
"""


def test_one_process_writes_and_its_death_releases_the_lock(url, name):
    store = open_store(url, name)
    tenant = store._tenant
    with subprocess.Popen([sys.executable, "-c", HOLD, url, name], stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout.readline() == "locked\n"
        with pytest.raises(IndexBusyError, match="another process is indexing"), tenant.write_lock(0.2):
            pass
        other = open_store(url, f"{name}-other")
        with other._tenant.write_lock(1):
            pass  # another tenant has a lock of its own
        other.close()
        holder.kill()
    with tenant.write_lock(5):
        pass
    store.close()


def test_several_processes_index_one_workspace_at_once(example, url):
    script = (
        "import sys; from notewell import Memory;"
        "memory = Memory.open(sys.argv[1], provider='hashing', store__url=sys.argv[2]);"
        "report = memory.index(); print(report.complete, len(report.problems)); memory.close()"
    )
    command = [sys.executable, "-c", script, str(example), url]
    started = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(4)]
    for process in started:
        out, err = process.communicate(timeout=120)
        assert out.split() == ["True", "0"], err
    with Memory.open(example, provider="hashing", store__url=url) as memory:
        assert memory.status().files == 47
        assert memory.verify().findings == ()


def test_a_rebuild_fills_a_generation_beside_the_one_that_answers(example, url):
    with Memory.open(example, provider="hashing", store__url=url) as memory:
        memory.index()
        expected = memory.search("boiler", sync=False).hits
        problems, answers, done = [], [], threading.Event()

        def search():
            try:
                while not done.is_set():
                    answers.append(memory.search("boiler", sync=False).hits)
            except Exception as error:  # noqa: BLE001
                problems.append(error)

        reader = threading.Thread(target=search)
        reader.start()
        before = memory._components.indexes.current()
        assert memory.index(force=True).rebuilt
        done.set()
        reader.join()
        assert problems == []
        assert all(hits == expected for hits in answers)
        assert memory._components.indexes.current() != before
        assert len(memory._components.indexes._generations()) == 1
        assert memory.verify().findings == ()


def test_an_interrupted_rebuild_is_continued(example, url, monkeypatch):
    from notewell.files import faults

    with Memory.open(example, provider="hashing", store__url=url) as memory:
        memory.index()

        def stop(point):
            if point == "rebuild.verify":
                raise OSError(5, "the machine stops")

        monkeypatch.setattr(faults, "_planted", stop)
        with pytest.raises(Exception, match="machine stops"):
            memory.index(force=True)
        monkeypatch.setattr(faults, "_planted", None)
        assert len(memory._components.indexes.unfinished()) == 1
        assert memory.search("boiler", sync=False).hits
        begun = memory._components.indexes.unfinished()[0]
        assert memory.index(force=True).rebuilt
        assert memory._components.indexes.current() == begun


# --- a lock that is lost ---------------------------------------------------------------------------


def cut_lock(server, tenant):
    """End the connection that holds the write lock of a tenant."""
    ((gone,),) = server.execute(
        "SELECT pg_terminate_backend(pid, 5000) FROM pg_locks WHERE locktype = 'advisory' AND granted"
        " AND classid = %s::oid AND objid = %s::oid",
        LOCK_CLASS,
        tenant.number(),
        database="memory",
    )
    assert gone


def put(store, path, *, chunks=1):
    store.put_document(document(path), chunks_of(*(f"{path} {number}" for number in range(chunks))), {})


def test_who_lost_the_lock_writes_nothing_once_another_has_it(server, url, name):
    first, second = open_store(url, name), open_store(url, name)
    with first._tenant.write_lock(5):
        put(first, "memory/before.md")
        cut_lock(server, first._tenant)
        put(first, "memory/alone.md", chunks=64)  # nobody else has the lock; so many that they are tidied up
        with second._tenant.write_lock(5):
            put(second, "memory/second.md")
            for write in (
                lambda: put(first, "memory/late.md"),
                lambda: first.remove_documents("memory", ["memory/second.md"]),
                first.optimize,
                first._tenant.next_index_path,
                lambda: first._tenant.switch_to(first._tenant.current()),
                lambda: first._tenant.set_aside(first._tenant.current()),
            ):
                with pytest.raises(StoreUnavailableError, match="another process writes now"):
                    write()
            put(second, "memory/third.md")
    with second.reading() as snapshot:
        assert sorted(path for _, path in snapshot.documents()) == [
            f"memory/{name}.md" for name in ("alone", "before", "second", "third")
        ]
    assert second.verify() == []
    with first._tenant.write_lock(5):
        put(first, "memory/late.md")
    first.close()
    second.close()


def test_who_takes_the_lock_waits_for_what_is_just_being_written(server, url, name):
    first, second = open_store(url, name), open_store(url, name)
    happened = []

    def take():
        with second._tenant.write_lock(30), second.reading() as snapshot:
            happened.append(sorted(path for _, path in snapshot.documents()))

    taker = threading.Thread(target=take)
    waiting = "SELECT count(*) FROM pg_stat_activity WHERE datname = 'memory' AND wait_event_type = 'Lock'"
    with first._tenant.write_lock(5):
        with first.together():
            put(first, "memory/a.md")
            cut_lock(server, first._tenant)
            taker.start()
            while not happened and server.execute(waiting) == [(0,)]:
                time.sleep(0.01)
            put(first, "memory/b.md")
        taker.join()
    assert happened == [["memory/a.md", "memory/b.md"]]
    first.close()
    second.close()


def test_an_index_run_that_loses_its_lock_takes_it_again(example, server, url):
    problems = []

    def other():
        try:
            with Memory.open(example, provider="hashing", store__url=url) as memory:
                assert memory.index().complete
        except Exception as error:  # noqa: BLE001
            problems.append(error)

    others = []
    with Memory.open(example, provider="hashing", store__url=url) as memory:

        def progress(step):
            if step.done == 10 and not others:
                cut_lock(server, memory._components.indexes)
                others.append(threading.Thread(target=other))
                others[0].start()

        assert memory.index(progress=progress).complete
        others[0].join()
        assert problems == []
        assert memory.status().files == 47
        assert memory.verify().findings == ()
