"""`python -m benchmarks`: sizes and contestants in, Markdown tables on stdout and all numbers in a JSON file out."""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import platform
import shutil
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benchmarks.cold import cold_searches, small_workspace
from benchmarks.processes import run_phase
from benchmarks.report import size_table, small_table
from benchmarks.worker import NAMES, POSTGRES

PHASES = ("build", "updates", "replaced", "searches", "recall")
MILLION = 1_000_000
OPENCLAW_UP_TO = 100_000  # chunks; ten times as many would need hours and a hundred gigabytes
NEEDS = {"lancedb": ("lancedb", "pyarrow"), "openclaw-json": ("sqlite_vec",), "openclaw-blob": ("sqlite_vec",)}


def main() -> None:
    """Measure and print."""
    options = _options()
    if options.store == "postgres":
        _measure_postgres(options)
        return
    sizes = [int(size) for size in options.chunks.split(",") if size]
    if options.with_1m:
        sizes.append(MILLION)
    names = [name for name in NAMES if name not in options.skip.split(",") and _can_run(name)]
    results: dict[str, Any] = {"machine": _machine(), "sizes": {}}
    folder = Path(tempfile.mkdtemp(prefix="notewell-bench-", dir=options.folder))
    try:
        for size in sizes:
            results["sizes"][size] = _measure_size(size, names, folder / str(size))
            print(size_table(size, results["sizes"][size]), end="\n\n", flush=True)
            shutil.rmtree(folder / str(size))
        if "notewell" in names and _can_embed():
            _say("small workspace: the command with the real model")
            results["small"] = small_workspace(folder / "small")
            print(small_table(results["small"]), flush=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if options.json:
        Path(options.json).write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")


def _measure_postgres(options: argparse.Namespace) -> None:
    """Measure notewell in SQLite and in PostgreSQL, side by side, then one tenant among many."""
    from benchmarks.contestant import Ground
    from benchmarks.hnsw import hnsw_table, measure_hnsw
    from benchmarks.postgres import measure_tenants, running_server, tenants_table, use_database

    results: dict[str, Any] = {"machine": _machine(), "sizes": {}}
    folder = Path(tempfile.mkdtemp(prefix="notewell-bench-", dir=options.folder))
    try:
        with running_server() as server:
            for size in (int(size) for size in options.chunks.split(",") if size):
                use_database(server, f"chunks{size}")
                results["sizes"][size] = _measure_size(size, ["notewell", POSTGRES], folder / str(size))
                print(size_table(size, results["sizes"][size]), end="\n\n", flush=True)
                if options.hnsw:
                    numbers = measure_hnsw(server, Ground(folder / str(size)))
                    results["sizes"][size]["hnsw"] = numbers
                    print(hnsw_table(numbers, results["sizes"][size][POSTGRES]), end="\n\n", flush=True)
                shutil.rmtree(folder / str(size))
                server.execute(f"DROP DATABASE chunks{size} WITH (FORCE)")
            if options.tenants:
                results["tenants"] = measure_tenants(server, options.tenants, folder / "tenants")
                print(tenants_table(results["tenants"]), flush=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if options.json:
        Path(options.json).write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--chunks", default="1000,10000", help="sizes to measure, separated by commas")
    parser.add_argument("--with-1m", action="store_true", help="also a million chunks, without OpenClaw's layout")
    parser.add_argument("--skip", default="", help=f"contestants to leave out, separated by commas: {', '.join(NAMES)}")
    parser.add_argument("--store", choices=["postgres"], help="measure this store beside SQLite, and nothing else")
    parser.add_argument("--tenants", type=int, default=1_000, help="tenants of 1,000 chunks, with --store; 0: none")
    parser.add_argument("--hnsw", action="store_true", help="also pgvector's HNSW index, with --store")
    parser.add_argument("--json", default="", metavar="FILE", help="write every number there")
    parser.add_argument("--folder", default=None, help="where to work; default: the system's temporary folder")
    return parser.parse_args()


def _measure_size(size: int, names: list[str], folder: Path) -> dict[str, Any]:
    folder.mkdir()
    made, _ = run_phase("prepare", str(size), folder)
    _say(f"{size:,} chunks: {made['files']:,} notes, {made['note_bytes'] / 1e6:.1f} MB")
    results: dict[str, Any] = {}
    for name in names:
        if name.startswith("openclaw") and size > OPENCLAW_UP_TO:
            continue
        results[name] = {}
        for phase in PHASES:
            started = time.perf_counter()
            numbers, _ = run_phase(phase, name, folder)
            results[name] |= numbers
            _say(f"{size:,} chunks: {name}, {phase}: {time.perf_counter() - started:.0f} s")
        if POSTGRES not in names:
            results[name] |= cold_searches(name, folder)
        shutil.rmtree(folder / name, ignore_errors=True)
    return results


def _can_run(name: str) -> bool:
    missing = [module for module in NEEDS.get(name, ()) if importlib.util.find_spec(module) is None]
    if missing:
        _say(f"{name} is left out: {', '.join(missing)} not installed (pip install 'notewell[bench]')")
    return not missing


def _can_embed() -> bool:
    return importlib.util.find_spec("onnxruntime") is not None


def _machine() -> dict[str, Any]:
    known = ("notewell", "apsw", "numpy", "sqlite-vec", "lancedb")
    versions = {}
    for name in known:
        if importlib.util.find_spec(name.replace("-", "_")):
            versions[name] = version(name)
    return {
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "cores": os.cpu_count(),
        "versions": versions,
    }


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
