"""`python -m benchmarks --store postgres`: notewell in PostgreSQL beside SQLite, alone and among many tenants.

CPU is that of the client and of every process of the server together.
"""

from __future__ import annotations

import os
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.contestant import Ground
from benchmarks.ours import Notewell
from benchmarks.processes import run_phase
from benchmarks.worker import POSTGRES
from notewell.settings import load_settings

if TYPE_CHECKING:
    from collections.abc import Iterator

URL, POSTMASTER = "NOTEWELL_BENCH_URL", "NOTEWELL_BENCH_POSTMASTER"  # how workers learn of the server
TENANT_CHUNKS = 1_000
REPEATS = 3  # processes that ask the questions, alone and among the others; the median counts
# As on a small server: the tests' own settings keep next to nothing in memory.
SERVER = ("shared_buffers=1GB", "max_wal_size=4GB", "checkpoint_timeout=15min", "work_mem=16MB")
_COPIED = (
    *("generations", "meta", "documents", "chunks", "postings", "posting_batches", "dead_chunks", "vectors"),
    *("vector_codecs", "vector_segments"),
)
NANO = 1e-9


class NotewellInPostgres(Notewell):
    """Implements `Contestant` with the server that the benchmark has started."""

    name = POSTGRES

    def __init__(self, ground: Ground) -> None:
        flags = {"store.url": os.environ[URL], "store.tenant": ground.folder.name}
        super().__init__(ground, load_settings(ground.workspace, environ={}, flags=flags).settings)
        self._postmaster = int(os.environ[POSTMASTER])
        self._looking_s = 0.0  # what it took to look at the server's processes, which is not counted

    def cpu_s(self) -> float:
        """Return the CPU seconds of this process and of the server."""
        client = time.process_time() - self._looking_s
        server = server_cpu_s(self._postmaster)
        self._looking_s = time.process_time() - client
        return client + server

    def disk_bytes(self) -> tuple[int, int]:
        """Return what the tables of the database take with their indexes."""
        import psycopg

        with psycopg.connect(os.environ[URL], autocommit=True) as connection:
            rows = connection.execute(
                "SELECT relname LIKE 'cache%', sum(pg_total_relation_size(oid))::bigint FROM pg_class"
                " WHERE relnamespace = 'notewell'::regnamespace AND relkind = 'r' GROUP BY 1"
            ).fetchall()
        sizes = dict(rows)
        return sizes[False], sum(sizes.values())


def server_cpu_s(postmaster: int) -> float:
    """Return the CPU seconds of the postmaster's children, and of those that have ended."""
    children = Path(f"/proc/{postmaster}/task/{postmaster}/children").read_text().split()
    total = 0
    for pid in (str(postmaster), *children):
        try:
            total += int(Path(f"/proc/{pid}/schedstat").read_text().split()[0])
        except (FileNotFoundError, ProcessLookupError):
            continue  # it has just ended
    ended = Path(f"/proc/{postmaster}/stat").read_text().rsplit(") ", 1)[1].split()[13:15]
    return total * NANO + sum(map(int, ended)) / os.sysconf("SC_CLK_TCK")


@contextmanager
def running_server() -> Iterator[Any]:
    """Start a server for the benchmark, with an empty database of its own for each of its parts."""
    from tests.postgres_server import own_server

    with own_server(settings=SERVER) as server:
        assert server.process is not None
        os.environ[POSTMASTER] = str(server.process.pid)
        yield server


def use_database(server: Any, name: str) -> None:
    """Let the next workers use a new database."""
    os.environ[URL] = server.create_database(name)


def measure_tenants(server: Any, count: int, folder: Path) -> dict[str, Any]:
    """Measure one tenant alone in the database, then the same among many, filled by copying its rows."""
    folder.mkdir()
    use_database(server, "tenants")
    run_phase("prepare", str(TENANT_CHUNKS), folder)
    numbers, _ = run_phase("build", POSTGRES, folder)
    alone = [run_phase("searches", POSTGRES, folder)[0] for _ in range(REPEATS)]
    edits, _ = run_phase("replaced", POSTGRES, folder)
    started = time.perf_counter()
    for first in range(2, count + 1, 50):
        for table in _COPIED:
            _copy_tenant(server, table, range(first, min(first + 50, count + 1)))
    server.execute("VACUUM ANALYZE", database="tenants")
    filled_s = time.perf_counter() - started
    among = [run_phase("searches", POSTGRES, folder)[0] for _ in range(REPEATS)]
    edits_among, _ = run_phase("replaced", POSTGRES, folder)
    size = server.execute("SELECT pg_database_size('tenants')")[0][0]
    return {
        "tenants": count,
        "chunks": count * TENANT_CHUNKS,
        "fill_wall_s": filled_s,
        "database_bytes": size,
        "one_tenant_bytes": numbers["disk_bytes"],
        **{f"alone_{key}": _median(alone, key) for key in ("hybrid_cpu_p50_s", "hybrid_wall_p50_s")},
        **{f"among_{key}": _median(among, key) for key in ("hybrid_cpu_p50_s", "hybrid_wall_p50_s")},
        "alone_replace_cpu_s": edits["replace_cpu_s"],
        "among_replace_cpu_s": edits_among["replace_cpu_s"],
    }


def _copy_tenant(server: Any, table: str, numbers: range) -> None:
    columns = ", ".join(
        str(name)
        for (name,) in server.execute(
            "SELECT quote_ident(attname) FROM pg_attribute WHERE attrelid = %s::regclass AND attnum > 0"
            " AND NOT attisdropped AND attname <> 'tenant' ORDER BY attnum",
            f"notewell.{table}",
            database="tenants",
        )
    )
    if table == "generations":
        server.execute(
            "INSERT INTO notewell.tenants (id, name, agent, workspace, generation, last_generation)"
            " OVERRIDING SYSTEM VALUE SELECT n, 'copy-' || n, agent, workspace, generation, last_generation"
            " FROM notewell.tenants, generate_series(%s::int, %s::int) n WHERE id = 1",
            numbers[0],
            numbers[-1],
            database="tenants",
        )
    server.execute(
        f"INSERT INTO notewell.{table} (tenant, {columns}) SELECT n, {columns}"
        f" FROM notewell.{table}, generate_series(%s::int, %s::int) n WHERE tenant = 1 ORDER BY n",
        numbers[0],
        numbers[-1],
        database="tenants",
    )


def _median(runs: list[dict[str, Any]], key: str) -> float:
    import statistics

    return statistics.median(run[key] for run in runs)


def tenants_table(numbers: dict[str, Any]) -> str:
    """Return the table of one tenant alone and among many."""
    count = f"{numbers['tenants']:,}"
    rows = [
        ("warm hybrid search p50, ms CPU", "hybrid_cpu_p50_s"),
        ("warm hybrid search p50, ms wall", "hybrid_wall_p50_s"),
        ("replacing a note of ten chunks, ms CPU", "replace_cpu_s"),
    ]
    lines = [
        f"### {count} tenants of {TENANT_CHUNKS:,} chunks, {numbers['database_bytes'] / 1e6:,.0f} MB",
        "",
        f"| one of them is asked | alone | among {count} | |",
        "| --- | --: | --: | --: |",
    ]
    for label, key in rows:
        alone, among = numbers[f"alone_{key}"], numbers[f"among_{key}"]
        lines.append(f"| {label} | {alone * 1e3:.2f} | {among * 1e3:.2f} | {among / alone:.2f}x |")
    return "\n".join(lines)
