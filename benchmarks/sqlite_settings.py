"""Compares SQLite settings on one index: a page cache of 16 or 128 MB, and two ways to give free pages back.

Run it with `python -m benchmarks.sqlite_settings`; the figures are in docs/benchmarks.md.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import apsw

from benchmarks.corpus import load_questions, save_questions, write_corpus
from notewell import Memory
from notewell.store.sqlite import connection, open_index

CACHES_MB = (16, 128)


def main() -> None:
    """Build one index without vectors, then measure searches and removals."""
    chunks = int(sys.argv[1]) if len(sys.argv) > 1 else 50_000
    with tempfile.TemporaryDirectory() as folder:
        workspace = Path(folder) / "workspace"
        save_questions(Path(folder) / "questions.json", write_corpus(workspace, chunks=chunks))
        with Memory.open(workspace, provider="none") as memory:
            memory.index()
            index = Path(memory.status().db_path or "")
        print(f"{index.stat().st_size / 1e6:.0f} MB of index")
        for megabytes in CACHES_MB * 2:
            command = [sys.executable, "-m", "benchmarks.sqlite_settings", "search", folder, str(megabytes)]
            subprocess.run(command, check=True)
        for share in (4, 2):
            for way in ("whole", "incremental"):
                measure_vacuum(index, Path(folder) / f"{way}-{share}.sqlite", way=way, share=share)


def measure_searches(folder: Path, megabytes: int) -> None:
    """Ask every question by keyword, three times over, in a process with this page cache."""
    connection._CACHE_KIB = megabytes * 1000  # noqa: SLF001 - not a setting: that is what this decides
    questions = load_questions(folder / "questions.json")
    with Memory.open(folder / "workspace", provider="none") as memory:
        rounds = []
        for _ in range(3):
            begun = time.process_time()
            for question in questions:
                memory.search(question.text, sync=False)
            rounds.append((time.process_time() - begun) / len(questions) * 1000)
    peak = int(Path(f"/proc/{os.getpid()}/status").read_text().split("VmHWM:")[1].split()[0]) / 1024
    print(f"page cache {megabytes} MB: {', '.join(f'{each:.2f}' for each in rounds)} ms a search, peak {peak:.0f} MB")


def measure_vacuum(index: Path, copy: Path, *, way: str, share: int) -> None:
    """Remove every `share`-th note from a copy of the index and give the free pages back; then search."""
    shutil.copy(index, copy)
    if way == "incremental":
        database = apsw.Connection(str(copy))
        database.execute("PRAGMA auto_vacuum = INCREMENTAL")
        database.execute("VACUUM")
        database.close()
    store = open_index(copy, create=False, read_only=False)
    with store.reading() as snapshot:
        paths = sorted(path for _, path in snapshot.documents())[::share]
    begun = time.process_time()
    for start in range(0, len(paths), 256):
        store.remove_documents("memory", paths[start : start + 256])
    removed = time.process_time() - begun
    store.close()
    database = apsw.Connection(str(copy))
    database.execute("INSERT INTO terms (terms) VALUES ('optimize')")
    before = copy.stat().st_size
    begun = time.process_time()
    database.execute("VACUUM" if way == "whole" else "PRAGMA incremental_vacuum").fetchall()
    database.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    vacuumed = time.process_time() - begun
    words = [word for (word,) in database.execute("SELECT term FROM vocabulary ORDER BY doc DESC LIMIT 300")]
    scans = []
    for _ in range(3):
        begun = time.process_time()
        for word in words:
            database.execute(
                "SELECT rowid FROM terms WHERE terms MATCH ? ORDER BY bm25(terms) LIMIT 20", (f'"{word}"',)
            ).fetchall()
        scans.append(time.process_time() - begun)
    database.close()
    print(
        f"one note in {share} removed, {way} vacuum: removing {removed:.2f} s, vacuum {vacuumed:.2f} s, "
        f"{before / 1e6:.0f} to {copy.stat().st_size / 1e6:.0f} MB, scan {statistics.median(scans) * 1000:.0f} ms"
    )


if __name__ == "__main__":
    if sys.argv[1:2] == ["search"]:
        measure_searches(Path(sys.argv[2]), int(sys.argv[3]))
    else:
        main()
