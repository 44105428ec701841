"""Eight readers, two writers and rebuilds on one workspace at once: no error, no lost write, and how fast reads are."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from notewell import Memory
from tests.indexing.contents import contents_of, faults_of, fresh_contents

READERS, WRITERS = 8, 2
SETTLED_NOTES = 50
READER = """
import json, sys, time
from notewell import Memory

folder, until = sys.argv[1], time.time() + float(sys.argv[2])
taken, synced = [], []
with Memory.open(folder, provider="hashing") as memory:
    memory.search("settled1")  # opens the index and imports the rest
    asked = 0
    while time.time() < until:
        started = time.perf_counter()
        answer = memory.search(f"settled{asked % 50}", sync=None if asked % 4 == 0 else False)
        (synced if asked % 4 == 0 else taken).append(time.perf_counter() - started)
        assert answer.hits and answer.hits[0].path == f"memory/settled{asked % 50}.md", answer
        asked += 1
        time.sleep(0.01)
print(json.dumps({"taken": taken, "synced": synced}))
"""
WRITER = """
import json, sys, time
from pathlib import Path
from notewell import Memory

folder, until, name = Path(sys.argv[1]), time.time() + float(sys.argv[2]), sys.argv[3]
written = 0
with Memory.open(folder, provider="hashing") as memory:
    while time.time() < until:
        note = folder / f"memory/{name}{written}.md"
        note.write_text(f"# {name}\\n\\nWritten by {name}: subject{name}{written}.\\n")
        report = memory.index(force=name == "writer1" and written % 10 == 9)
        assert report.complete and not report.problems, report
        written += 1
        time.sleep(0.05)
print(json.dumps({"written": written}))
"""


def start(script: str, *arguments: object) -> subprocess.Popen[bytes]:
    env = {**os.environ, "NOTEWELL_CONFIG": os.devnull, "OPENBLAS_NUM_THREADS": "1"}
    return subprocess.Popen(
        [sys.executable, "-c", script, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env
    )


def measure(folder: Path, seconds: float, *, readers: int = READERS) -> dict[str, float]:
    """Run them all for so long; returns the figures, after checking that nothing was lost."""
    notes = folder / "notes"
    (notes / "memory").mkdir(parents=True)
    for i in range(SETTLED_NOTES):
        (notes / f"memory/settled{i}.md").write_text(f"# Settled\n\nThis is about settled{i}.\n", encoding="utf-8")
    with Memory.open(notes, provider="hashing") as memory:
        memory.index()
    reading = [start(READER, notes, seconds) for _ in range(readers)]
    writing = [start(WRITER, notes, seconds, f"writer{i}") for i in range(WRITERS)]
    outcomes, errors = [], []
    for process in (*reading, *writing):
        out, err = process.communicate(timeout=seconds + 300)
        if process.returncode:
            errors.append(err.decode())
        else:
            outcomes.append(json.loads(out))
    assert not errors, errors[0]
    taken = sorted(second for outcome in outcomes[:readers] for second in outcome["taken"])
    synced = sorted(second for outcome in outcomes[:readers] for second in outcome["synced"])
    written = sum(outcome["written"] for outcome in outcomes[readers:])
    with Memory.open(notes, provider="hashing") as memory:
        late = memory.index()
        assert memory.status().files == SETTLED_NOTES + written
        assert faults_of(memory) == []
        assert contents_of(memory) == fresh_contents(notes, folder / "fresh")
        assert not list(memory._components.folder.path.glob("*corrupt*"))
        assert len(list(memory._components.folder.path.glob("index-*.sqlite"))) == 1
    return {
        "reads": len(taken) + len(synced),
        "writes": written,
        "late": late.added,
        "median_ms": taken[len(taken) // 2] * 1000,
        "p99_ms": taken[len(taken) * 99 // 100] * 1000,
        "most_ms": taken[-1] * 1000,
        "synced_median_ms": synced[len(synced) // 2] * 1000,
        "synced_p99_ms": synced[len(synced) * 99 // 100] * 1000,
    }


def run(folder: Path, *, count: int, seed: int) -> bool:
    """Measure for `count` seconds; there is no chance in it but that of the scheduler."""
    found = measure(folder, count)
    print(
        f"{found['reads']} reads, {found['writes']} writes, 0 errors, 0 lost; read latency in ms:"
        f" median {found['median_ms']:.1f}, p99 {found['p99_ms']:.1f}, most {found['most_ms']:.1f};"
        f" with a sync before: median {found['synced_median_ms']:.1f}, p99 {found['synced_p99_ms']:.1f}"
    )
    return True
