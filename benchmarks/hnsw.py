"""`python -m benchmarks --store postgres --hnsw`: pgvector's HNSW index over one tenant's vectors, against our codes.

The tenant has a table of its own, as it would have a partition: under a filter by tenant the index finds too little.
CPU is that of the client and the server; reading the exact rows of the candidates, which a search does as well, is left
out.
"""

from __future__ import annotations

import os
import statistics
import time
from functools import partial
from typing import TYPE_CHECKING, Any

from benchmarks.contestant import CANDIDATES
from benchmarks.ours import EVERY_SIDE
from benchmarks.postgres import POSTMASTER, URL, server_cpu_s

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.contestant import Ground

EF_SEARCH = (200, 400)  # of fewer than the candidates that a search asks for, fewer come back
SEARCHES, INSERTS, ROWS = 200, 30, 10
_TABLE = """
CREATE TABLE own (chunk int PRIMARY KEY, embedding halfvec({dimensions}));
INSERT INTO own SELECT chunk, embedding FROM notewell.vectors ORDER BY chunk;
CREATE TABLE plain (LIKE own INCLUDING ALL);
INSERT INTO plain SELECT * FROM own;
ANALYZE own, plain;
"""
_NEAREST = "SELECT chunk FROM own ORDER BY embedding <#> %s::halfvec LIMIT %s"
_INSERT = (
    "INSERT INTO {} SELECT %s + n, embedding FROM plain, generate_series(1, %s) n WHERE chunk ="
    " (SELECT min(chunk) + %s FROM plain)"
)


def measure_hnsw(server: Any, ground: Ground) -> dict[str, Any]:
    """Build the index over the vectors of the database in use, ask it the questions, and insert into it."""
    import psycopg

    database = os.environ[URL].rpartition("/")[2]
    vectors = list(ground.question_vectors().values())
    postmaster = int(os.environ[POSTMASTER])

    def cpu(work: Callable[[], object]) -> float:
        start = time.process_time() + server_cpu_s(postmaster)
        work()
        return time.process_time() + server_cpu_s(postmaster) - start

    with psycopg.connect(server.url(database), autocommit=True) as connection:
        connection.execute(_TABLE.format(dimensions=len(vectors[0])).encode())
        connection.execute("SET maintenance_work_mem = '1GB'")
        connection.execute("SET max_parallel_maintenance_workers = 0")
        asked = [f"[{','.join(map(str, vector.tolist()))}]" for vector in vectors[:SEARCHES]]

        def nearest(query: str) -> list[int]:
            return [chunk for (chunk,) in connection.execute(_NEAREST, (query, EVERY_SIDE), prepare=True).fetchall()]

        exact = [nearest(query)[:CANDIDATES] for query in asked]
        exact_s = statistics.median(cpu(partial(nearest, query)) for query in asked[:20])
        build_s = cpu(
            lambda: connection.execute("CREATE INDEX by_nearness ON own USING hnsw (embedding halfvec_ip_ops)")
        )
        size = connection.execute("SELECT pg_relation_size('by_nearness'), pg_table_size('own')").fetchone()
        assert size is not None
        numbers = {"build_cpu_s": build_s, "index_bytes": size[0], "table_bytes": size[1], "exact_cpu_s": exact_s}
        for ef_search in EF_SEARCH:
            connection.execute(f"SET hnsw.ef_search = {ef_search}".encode())
            found = [nearest(query)[:CANDIDATES] for query in asked]
            shares = [len(set(one) & set(other)) / len(other) for one, other in zip(found, exact, strict=True)]
            times = [cpu(partial(nearest, query)) for query in asked]
            numbers[f"recall_{ef_search}"] = statistics.mean(shares)
            numbers[f"search_cpu_s_{ef_search}"] = statistics.median(times)

        def insert(table: str, number: int) -> None:
            statement = _INSERT.format(table).encode()
            connection.execute(statement, (10**8 + ROWS * number, ROWS, number), prepare=True)

        for table in ("own", "plain"):
            times = [cpu(partial(insert, table, number)) for number in range(INSERTS)]
            numbers[f"insert_cpu_s_{table}"] = statistics.median(times)
        connection.execute("DROP TABLE own, plain")
    return numbers


def hnsw_table(numbers: dict[str, Any], codes: dict[str, Any]) -> str:
    """Return the table; `codes` is what the product's own search of vectors costs."""
    rows = [
        ("exact, on the server", numbers["exact_cpu_s"] * 1e3, 1.0),
        ("codes in segments", codes["vector_leg_cpu_p50_s"] * 1e3, codes["recall_at_24"]),
        *(
            (f"HNSW, ef_search {each}", numbers[f"search_cpu_s_{each}"] * 1e3, numbers[f"recall_{each}"])
            for each in EF_SEARCH
        ),
    ]
    lines = ["| vectors, 200 of them asked for | ms CPU p50 | recall@24 |", "| --- | --: | --: |"]
    lines += [f"| {name} | {ms:.2f} | {recall:.3f} |" for name, ms, recall in rows]
    inserted = [numbers[f"insert_cpu_s_{table}"] * 1e3 for table in ("plain", "own")]
    told = (
        f"HNSW: built in {numbers['build_cpu_s']:.1f} s CPU, {numbers['index_bytes'] / 1e6:.0f} MB beside"
        f" {numbers['table_bytes'] / 1e6:.0f} MB of rows; ten rows inserted in {inserted[1]:.1f} ms CPU,"
        f" {inserted[0]:.1f} without it."
    )
    return "\n".join([*lines, "", told])
