"""`python -m benchmarks.transcripts`: what indexing long conversations costs, and what one more message costs then.

A transcript of the given size is invented: messages of people and assistants, and tool results, which make up most of
real ones. Every step runs in a process of its own, so that its memory is its own.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.processes import Cost, run_measured
from benchmarks.words import ORDINARY_WORDS

GIGABYTE = 1_000_000_000
TOOL_SHARE = 0.6  # of the bytes: about what coding agents' transcripts hold
STEP = """
import json, sys
from notewell import Memory
with Memory.open(sys.argv[1], provider="none", sources=["memory", "sessions"], experimental__session_memory=True,
                 sessions__paths=[sys.argv[2]]) as memory:
    report = memory.index(force=sys.argv[3] == "rebuild")
    hits = memory.search("benchmarklast", sync=False).hits
    status = memory.status()
print(json.dumps({"seconds": report.seconds, "bytes_read": report.bytes_read, "chunks": status.chunks,
                  "hits": len(hits), "index_bytes": status.index_bytes}))
"""


def records(size: int, seed: int) -> Iterator[bytes]:
    """Yield lines of a transcript until they make up so many bytes."""
    chance = random.Random(seed)
    vocabulary = [f"{word}{number}" for word in ORDINARY_WORDS for number in range(200)]
    written = number = 0
    while written < size:
        number += 1
        words = chance.choices(ORDINARY_WORDS, k=chance.randint(5, 200)) + chance.choices(vocabulary, k=10)
        chance.shuffle(words)
        role = "user" if number % 2 else "assistant"
        said = _line(role, f"m{seed}x{number} " + " ".join(words))
        noise = chance.randbytes(int(len(said) * TOOL_SHARE / (1 - TOOL_SHARE) / 2)).hex()
        yield from (said, result := _line("toolResult", noise))
        written += len(said) + len(result)


def _line(role: str, text: str) -> bytes:
    record = {"type": "message", "timestamp": "2026-03-04T10:00:00Z", "message": {"role": role, "content": text}}
    return json.dumps(record).encode() + b"\n"


def measure(folder: Path, size: int, files: int) -> None:
    """Print one line a step."""
    workspace, talks = folder / "workspace", folder / "talks"
    workspace.mkdir()
    talks.mkdir()
    for number in range(files):
        with (talks / f"{number}.jsonl").open("wb") as file:
            for line in records(size // files, number):
                file.write(line)
    last = talks / f"{files - 1}.jsonl"
    total = sum(file.stat().st_size for file in talks.iterdir())
    print(f"{total / 1e6:,.0f} MB of JSONL in {files} transcripts, no embedding\n")
    print("| step | seconds | CPU s | peak memory MB | bytes read | chunks | index MB |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    _step("first index", workspace, talks)
    _step("nothing new", workspace, talks)
    _append(last, _line("user", "benchmarklast one more message"))
    answer = _step("one message more", workspace, talks)
    assert answer["hits"], "the appended message is not found"
    _append(last, b"".join(records(1_000_000, 99)))
    _step("1 MB more", workspace, talks)
    with last.open("r+b") as file:
        file.truncate(last.stat().st_size * 9 // 10)
    _step("a tenth cut off the last transcript", workspace, talks)
    _step("rebuild", workspace, talks)


def _append(file: Path, text: bytes) -> None:
    with file.open("ab") as handle:
        handle.write(text)
    time.sleep(0.05)  # let the file's time be older than the file system's tick


def _step(name: str, workspace: Path, talks: Path) -> dict[str, int]:
    output, cost = run_measured(["-c", STEP, str(workspace), str(talks), name])
    answer: dict[str, int] = json.loads(output.splitlines()[-1])
    print(f"| {name} | {_figures(answer, cost)} |", flush=True)
    return answer


def _figures(answer: dict[str, int], cost: Cost) -> str:
    cpu = "" if cost.cpu_s is None else f"{cost.cpu_s:.1f}"
    peak = "" if cost.peak_bytes is None else f"{cost.peak_bytes / 1e6:,.0f}"
    return " | ".join(
        (
            f"{answer['seconds']:.2f}",
            cpu,
            peak,
            f"{answer['bytes_read']:,}",
            f"{answer['chunks']:,}",
            f"{answer['index_bytes'] / 1e6:,.0f}",
        )
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.transcripts", description=__doc__)
    parser.add_argument("--gigabytes", type=float, default=1.0, help="how much JSONL (default: 1)")
    parser.add_argument("--files", type=int, default=1, help="in how many transcripts (default: 1)")
    parser.add_argument("--folder", type=Path, help="where to work (default: the system's temporary folder)")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="notewell-transcripts-", dir=options.folder))
    try:
        measure(folder, int(options.gigabytes * GIGABYTE), options.files)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
