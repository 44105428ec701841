"""`python -m benchmarks.providers`: notes through a fake OpenAI on this machine in, requests, time, CPU and memory out.

The fake waits 20 ms before each answer and runs in a process of its own. The text is indexed beforehand without
vectors, so that the run that is measured does nothing but embed.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.corpus import write_corpus
from benchmarks.processes import ROOT, run_measured

LATENCY_S = 0.02
AT_ONCE = 4  # remote.concurrency


class Server:
    """The fake in its process."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        assert process.stdout is not None
        self.address: dict[str, str] = json.loads(process.stdout.readline())

    def counts(self) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        found: dict[str, Any] = json.loads(self._process.stdout.readline())
        return found


@contextmanager
def running_server() -> Iterator[Server]:
    command = [sys.executable, "-m", "benchmarks.provider_server", str(LATENCY_S)]
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8"
    ) as process:
        try:
            yield Server(process)
        finally:
            assert process.stdin is not None
            process.stdin.close()
            process.wait(30)


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.providers", description=__doc__)
    parser.add_argument("--chunks", type=int, default=10_000)
    parser.add_argument("--worker", nargs=3, metavar=("FOLDER", "FORCE", "PROVIDER"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        folder, force, provider = options.worker
        work(Path(folder), provider, force=force == "force")
        return
    with tempfile.TemporaryDirectory(prefix="notewell-bench-") as folder:
        print(table(measure(options.chunks, Path(folder) / "notes")))


def measure(chunks: int, workspace: Path) -> dict[str, dict[str, Any]]:
    """Return what each run cost."""
    write_corpus(workspace, chunks=chunks)
    results: dict[str, dict[str, Any]] = {}
    with running_server() as server:
        results["text"] = _run(server, workspace, "none")
        results["first"] = _run(server, workspace, "openai")
        results["second"] = _run(server, workspace, "openai")
        results["rebuild"] = _run(server, workspace, "openai", force=True)
    return results


def _run(server: Server, workspace: Path, provider: str, *, force: bool = False) -> dict[str, Any]:
    before = server.counts()
    environment = {name: value for name, value in os.environ.items() if not name.startswith("NOTEWELL_")} | {
        "NOTEWELL_CONFIG": os.devnull,
        "NOTEWELL_REMOTE__BASE_URL": server.address["base_url"],
        "OPENAI_API_KEY": server.address["key"],
        "OPENBLAS_NUM_THREADS": "1",
    }
    arguments = ["-m", "benchmarks.providers", "--worker", str(workspace), "force" if force else "-", provider]
    output, cost = run_measured(arguments, environment=environment)
    after = server.counts()
    numbers: dict[str, Any] = json.loads(output.splitlines()[-1])
    return numbers | {
        "requests": after["requests"] - before["requests"],
        "connections": after["connections"] - before["connections"],
        "at_once": after["peak"],
        "server_cpu_s": after["cpu_s"] - before["cpu_s"],
        "peak_bytes": cost.peak_bytes,
    }


def work(workspace: Path, provider: str, *, force: bool) -> None:
    """Index once and print what it took; importing is not counted, the first connection is."""
    from notewell import Memory

    with Memory.open(workspace, provider=provider) as memory:
        started, cpu, waited = time.perf_counter(), time.process_time(), _waited_for_a_core()
        report = memory.index(force=force)
        numbers = {
            "wall_s": time.perf_counter() - started,
            "cpu_s": time.process_time() - cpu,
            "waited_s": _waited_for_a_core() - waited,
        }
        assert report.complete, report
        assert not report.problems, report.problems
        numbers |= {"chunks": memory.status().chunks, "embedded": report.embedded, "reused": report.reused}
    print(json.dumps(numbers))


def _waited_for_a_core() -> float:
    """Return for how long the main thread was ready and others had the processors; 0 where the system does not tell."""
    try:
        return int(Path(f"/proc/self/task/{os.getpid()}/schedstat").read_text(encoding="ascii").split()[1]) / 1e9
    except (OSError, IndexError, ValueError):
        return 0.0


def table(results: dict[str, dict[str, Any]]) -> str:
    """Return the table of docs/benchmarks.md."""
    first, chunks = results["first"], results["first"]["chunks"]
    ideal_s = first["requests"] / AT_ONCE * LATENCY_S
    lines = [
        f"| {chunks:,} chunks, {LATENCY_S * 1000:.0f} ms a request | embedding | run again | rebuilt |",
        "| --- | --: | --: | --: |",
    ]
    runs = [results[name] for name in ("first", "second", "rebuild")]
    rows = {
        "requests": [f"{run['requests']:,}" for run in runs],
        "connections": [f"{run['connections']:,}" for run in runs],
        "chunks embedded": [f"{run['embedded']:,}" for run in runs],
        "wall time, s": [f"{run['wall_s']:.2f}" for run in runs],
        "of it, the main thread waiting for a core, s": [f"{run['waited_s']:.2f}" for run in runs],
        f"the least it could be (requests / {AT_ONCE} x {LATENCY_S * 1000:.0f} ms), s": [f"{ideal_s:.2f}", "", ""],
        "CPU of notewell, s": [f"{run['cpu_s']:.2f}" for run in runs],
        "the same a chunk, ms": [f"{run['cpu_s'] / chunks * 1000:.2f}" for run in runs],
        "CPU of the fake, s": [f"{run['server_cpu_s']:.2f}" for run in runs],
        "peak memory, MB": ["-" if run["peak_bytes"] is None else f"{run['peak_bytes'] / 1e6:.0f}" for run in runs],
    }
    lines += [f"| {name} | {' | '.join(values)} |" for name, values in rows.items()]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
