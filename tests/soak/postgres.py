"""PostgreSQL under kills: of the client, of the server, of a primary with a standby; and many processes at once.

`--count` is the number of client kills; the server is killed a fifth as often, and the readers run for 0.6 seconds a
kill: 100 is 100 kills, 20 kills of the server and a minute.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import threading
import time
from pathlib import Path

from notewell import Memory, NotewellError
from tests.postgres_server import PostgresServer, own_server, standby_of

WRITERS, READERS = 4, 8
NOTES = 24
CONFIRMED = 20  # notes before the primary is killed
_REPLAYED = (
    "SELECT (SELECT count(*)::int FROM pg_stat_wal_receiver WHERE status = 'streaming'),"
    " pg_last_wal_receive_lsn() IS NOT DISTINCT FROM pg_last_wal_replay_lsn()"
)
INDEX = """
import sys
from notewell import Memory

with Memory.open(sys.argv[1], provider="hashing", store__url=sys.argv[2]) as memory:
    print("ready", flush=True)
    memory.index(force=sys.argv[3] == "rebuild")
"""
WRITE = """
import json, sys, time
from pathlib import Path
from notewell import Memory

folder, url, until, errors, written = Path(sys.argv[1]), sys.argv[2], time.time() + float(sys.argv[3]), [], 0
with Memory.open(folder, provider="hashing", store__url=url) as memory:
    while time.time() < until:
        note = folder / "memory" / f"{sys.argv[4]}-{written}.md"
        note.write_text(f"# N\\n\\nsubject{sys.argv[4]}x{written} here.\\n")
        try:
            memory.index()
        except Exception as error:
            errors.append(repr(error))
        written += 1
print(json.dumps({"done": written, "errors": errors}))
"""
READ = """
import json, sys, time
from notewell import Memory

folder, url, until, errors, asked = sys.argv[1], sys.argv[2], time.time() + float(sys.argv[3]), [], 0
with Memory.open(folder, provider="hashing", store__url=url) as memory:
    while time.time() < until:
        try:
            hits = memory.search(f"settled{asked % 24}", sync=False).hits
            assert hits and hits[0].path == f"memory/settled{asked % 24}.md", hits
        except Exception as error:
            errors.append(repr(error))
        asked += 1
print(json.dumps({"done": asked, "errors": errors}))
"""


def run(folder: Path, *, count: int, seed: int) -> bool:
    """Do all of it, one after another."""
    chance = random.Random(seed)
    with own_server() as server:
        url = server.create_database("memory")
        killed = kill_clients(workspace(folder / "clients"), url, count, chance)
        print(f"{count} points of the client, {killed} killed in time: nothing lost or doubled", flush=True)
        survived = kill_servers(workspace(folder / "servers"), server, url, max(1, count // 5), chance)
        print(f"{survived} kills of the server: nothing lost or doubled", flush=True)
        done = read_and_write(workspace(folder / "together"), url, count * 0.6)
        print(f"{WRITERS} writers, {READERS} readers, {count * 0.6:.0f} s: {done}, 0 errors", flush=True)
    for synchronous in (True, False):
        print(promote(workspace(folder / f"failover-{synchronous}"), synchronous=synchronous), flush=True)
    return True


def workspace(folder: Path) -> Path:
    (folder / "memory").mkdir(parents=True)
    for number in range(NOTES):
        (folder / "memory" / f"settled{number}.md").write_text(f"# Settled\n\nsettled{number} stays.\n")
    return folder


def started(script: str, *arguments: object) -> subprocess.Popen[str]:
    environ = {**os.environ, "NOTEWELL_CONFIG": os.devnull, "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, "-c", script, *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environ)


def check(folder: Path, url: str, *, sync: bool = True) -> None:
    """Raise unless the index is whole and, after a sync, equal to a fresh one of the files."""
    with Memory.open(folder, provider="hashing", store__url=url) as memory:
        broken = [each.detail for each in memory.doctor() if not each.ok and each.name == "index"]
        assert not broken, broken
        if sync:
            memory.index()
            found = memory.verify().findings
            assert found == (), found


def kill_clients(folder: Path, url: str, count: int, chance: random.Random) -> int:
    """Kill processes that index or rebuild, each at another moment; return how many had not finished."""
    with Memory.open(folder, provider="hashing", store__url=url) as memory:
        memory.index()
    killed, usual_s = 0, 0.5
    for number in range(count):
        for _ in range(6):
            note = folder / "memory" / f"n{chance.randrange(40)}.md"
            note.write_text(f"# N\n\n{' '.join(f'w{chance.randrange(2000)}' for _ in range(120))} point{number}\n")
        (folder / "memory" / f"n{chance.randrange(40)}.md").unlink(missing_ok=True)
        process = started(INDEX, folder, url, chance.choice(("update", "rebuild")))
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(chance.random() * usual_s)
        if process.poll() is None:
            process.kill()
            killed += 1
        else:
            usual_s = max(0.05, 0.9 * usual_s)
        process.communicate()
        check(folder, url, sync=number % 5 == 4 or number == count - 1)
    return killed


def kill_servers(folder: Path, server: PostgresServer, url: str, count: int, chance: random.Random) -> int:
    """Kill the server under a writer, which has to go on without an error."""
    for number in range(count):
        writer = started(WRITE, folder, url, 4, f"k{number}")
        time.sleep(1 + 2 * chance.random())
        server.kill()
        time.sleep(chance.random() / 2)
        server.start()
        outcome(writer)
        check(folder, url)
    return count


def outcome(process: subprocess.Popen[str]) -> int:
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err[-2000:]
    found = json.loads(out.splitlines()[-1])
    assert not found["errors"], found["errors"][:3]
    return int(found["done"])


def read_and_write(folder: Path, url: str, seconds: float) -> str:
    """Let writers and readers work on one tenant in processes of their own."""
    with Memory.open(folder, provider="hashing", store__url=url) as memory:
        memory.index()
    writers = [started(WRITE, folder, url, seconds, f"w{number}") for number in range(WRITERS)]
    readers = [started(READ, folder, url, seconds) for _ in range(READERS)]
    written, asked = sum(map(outcome, writers)), sum(map(outcome, readers))
    check(folder, url)
    with Memory.open(folder, provider="hashing", store__url=url) as memory:
        assert memory.status().files == NOTES + written
    return f"{written} notes written, {asked} searches"


def promote(folder: Path, *, synchronous: bool) -> str:
    """Kill the primary in the middle of writing and promote its standby; return what became of confirmed notes."""
    confirmed: list[str] = []
    stop = threading.Event()
    errors: list[NotewellError] = []
    with own_server() as primary:
        primary.create_database("memory")
        with standby_of(primary) as standby:
            if synchronous:
                primary.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
                primary.execute("SELECT pg_reload_conf()")
                wait_for(lambda: primary.execute("SELECT sync_state FROM pg_stat_replication") == [("sync",)])
            hosts = f"127.0.0.1:{primary.port},127.0.0.1:{standby.port}"
            url = f"postgresql://keeper@{hosts}/memory?target_session_attrs=read-write&connect_timeout=2"

            def write() -> None:
                with Memory.open(folder, provider="hashing", store__url=url) as memory:
                    number = 0
                    while not stop.is_set():
                        path = f"memory/f{number}.md"
                        (folder / path).write_text(f"# F\n\nfailover{number}\n")
                        try:
                            memory.index()
                            confirmed.append(path)
                        except NotewellError as error:
                            errors.append(error)
                        number += 1

            writer = threading.Thread(target=write)
            writer.start()
            wait_for(lambda: len(confirmed) >= CONFIRMED)
            primary.kill()
            before = list(confirmed)
            # Before it is promoted: afterwards the writer indexes again what was lost, and nobody would see it.
            wait_for(lambda: standby.execute(_REPLAYED) == [(0, True)])
            kept = {str(path) for (path,) in standby.execute("SELECT path FROM notewell.documents", database="memory")}
            standby.execute("SELECT pg_promote()")
            wait_for(lambda: len(confirmed) >= len(before) + 3 or bool(errors))
            stop.set()
            writer.join()
            assert not errors, errors[0]
            lost = [path for path in before if path not in kept]
            assert not (synchronous and lost), lost
            check(folder, url)
    how = "synchronous" if synchronous else "asynchronous"
    return f"failover, {how}: {len(before)} confirmed before, {len(lost)} lost, all there after the next sync"


def wait_for(condition: object, seconds: float = 60.0) -> None:
    assert callable(condition)
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.05)
