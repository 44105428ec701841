"""`python -m benchmarks.mcp`: what the MCP server costs, from a cold start to many clients; Markdown on stdout.

A copy of the example workspace is searched through `notewell mcp` on stdio by a client of a few lines, so that what is
measured is the server. CPU is that of the server's process, as Linux tells it; elsewhere there is only wall time.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from itertools import cycle, islice
from pathlib import Path
from typing import Any, Self

from benchmarks.processes import ROOT

QUESTIONS = (
    "why does nobody deploy in the afternoon?",
    "how do I wake the NAS from outside?",
    "restore test of the backups",
    "who looks after the garden?",
    "which queue does Harbor use?",
    "berth advisory lock postmortem",
    "printer forgets its name",
    "what did we decide about time zones?",
)
VERSION = "2025-11-25"
CHARS_PER_TOKEN = 4


@dataclass(frozen=True, slots=True)
class Moment:
    """How long something took."""

    wall_s: float
    cpu_s: float | None


class Server:
    """`notewell mcp` as a process, and the line to it."""

    def __init__(self, workspace: Path, provider: str) -> None:
        quiet = {key: value for key, value in os.environ.items() if not key.startswith("NOTEWELL_")}
        environment = quiet | {"NOTEWELL_CONFIG": os.devnull, "NOTEWELL_PROVIDER": provider}
        self._started = time.perf_counter()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "notewell", "mcp", "-w", str(workspace)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
        )
        self._number = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.close()
        self.process.wait(30)
        self.process.stdout.close()

    def ask(self, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        assert self.process.stdin
        assert self.process.stdout
        self._number += 1
        message = {"jsonrpc": "2.0", "id": self._number, "method": method, "params": params or {}}
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()
        while True:
            answer = json.loads(self.process.stdout.readline())
            if answer.get("id") == self._number:
                return answer

    def initialize(self) -> dict[str, Any]:
        client = {"name": "benchmark", "version": "1"}
        answer = self.ask("initialize", {"protocolVersion": VERSION, "capabilities": {}, "clientInfo": client})
        assert self.process.stdin
        self.process.stdin.write(b'{"jsonrpc": "2.0", "method": "notifications/initialized"}\n')
        return answer["result"]

    def search(self, question: str) -> dict[str, Any]:
        answer = self.ask("tools/call", {"name": "memory_search", "arguments": {"query": question}})
        if "error" in answer or answer["result"]["isError"]:
            raise RuntimeError(json.dumps(answer))
        return answer["result"]["structuredContent"]

    def moment(self) -> Moment:
        return Moment(time.perf_counter() - self._started, cpu_of(self.process.pid))


def cpu_of(pid: int) -> float | None:
    """Return the CPU seconds of a process so far, user and system."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def cold(workspace: Path, provider: str, repeats: int) -> dict[str, Any]:
    """Return the medians of the time to the first answer and to the first hits."""
    first, found, mode = [], [], ""
    for _ in range(repeats + 1):
        with Server(workspace, provider) as server:
            server.initialize()
            first.append(server.moment())
            mode = server.search(QUESTIONS[0])["mode"]
            found.append(server.moment())
    return {"mode": mode, "initialize": _median(first[1:]), "search": _median(found[1:])}  # the first warms the disk


def warm(workspace: Path, provider: str, calls: int) -> dict[str, Any]:
    """Return the median of a search through stdio, of the same without the protocol, and of an empty request.

    The three take turns, so that whatever else the machine does meanwhile slows all of them alike.
    """
    from notewell import Memory
    from notewell.agents.tools import MemoryTools

    questions = cycle(QUESTIONS)
    through, ours, empty, busy = [], [], [], 0.0
    with Memory.open(workspace, provider=provider) as memory, Server(workspace, provider) as server:
        tools = MemoryTools(memory)
        server.initialize()
        for question in QUESTIONS:
            server.search(question)
            tools.call("memory_search", {"query": question})
        before = cpu_of(server.process.pid)
        through.extend(_timed(server.search, question) for question in islice(questions, calls))
        busy = (cpu_of(server.process.pid) or 0) - (before or 0)
        for question in islice(questions, calls):
            through.append(_timed(server.search, question))
            ours.append(_timed(lambda asked=question: tools.call("memory_search", {"query": asked}).text))
            empty.append(_timed(server.ask, "ping"))
    return {
        "through_ms": statistics.median(through) * 1000,
        "ours_ms": statistics.median(ours) * 1000,
        "empty_ms": statistics.median(empty) * 1000,
        "cpu_ms": busy / calls * 1000,
    }


def crowd(workspace: Path, provider: str, clients: int, seconds: float) -> dict[str, Any]:
    """Let many clients, each with a server of its own, search without a pause; return how they fared."""
    times: list[float] = []
    errors: list[str] = []
    lock = threading.Lock()
    ready = threading.Barrier(clients)

    def work(number: int) -> None:
        own, questions = [], cycle(QUESTIONS[number % len(QUESTIONS) :] + QUESTIONS)
        try:
            with Server(workspace, provider) as server:
                server.initialize()
                server.search(next(questions))
                ready.wait(120)
                end = time.perf_counter() + seconds
                while time.perf_counter() < end:
                    own.append(_timed(server.search, next(questions)))
        except (RuntimeError, OSError, ValueError, threading.BrokenBarrierError) as error:
            with lock:
                errors.append(str(error))
            ready.abort()
        with lock:
            times.extend(own)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    times.sort()
    return {
        "calls": len(times),
        "errors": errors,
        "p50_ms": times[len(times) // 2] * 1000 if times else None,
        "p95_ms": times[int(len(times) * 0.95)] * 1000 if times else None,
    }


def tokens(workspace: Path) -> dict[str, float]:
    """Return about how many tokens the tool list and the instructions take, as they go over the wire."""
    with Server(workspace, "none") as server:
        instructions = server.initialize()["instructions"]
        listed = server.ask("tools/list")["result"]["tools"]
    sent = json.dumps(listed, ensure_ascii=False, separators=(",", ":"))
    return {"tools": len(listed), "list": len(sent) / CHARS_PER_TOKEN, "prompt": len(instructions) / CHARS_PER_TOKEN}


def _timed(work: Any, *args: Any) -> float:
    started = time.perf_counter()
    work(*args)
    return time.perf_counter() - started


def _median(moments: list[Moment]) -> Moment:
    cpu = [moment.cpu_s for moment in moments if moment.cpu_s is not None]
    return Moment(statistics.median(m.wall_s for m in moments), statistics.median(cpu) if cpu else None)


def _shown(moment: Moment) -> str:
    cpu = "?" if moment.cpu_s is None else f"{moment.cpu_s:.2f}"
    return f"{cpu} s CPU, {moment.wall_s:.2f} s wall"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.mcp", description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60, help="how long many clients search at once")
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--repeats", type=int, default=7, help="cold starts")
    parser.add_argument("--calls", type=int, default=300, help="warm searches")
    asked = parser.parse_args()
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # as the command does
    with tempfile.TemporaryDirectory(prefix="notewell-mcp-") as folder:
        rows = []
        for provider in ("none", "local"):
            workspace = Path(folder) / provider
            shutil.copytree(ROOT / "examples" / "workspace", workspace, ignore=shutil.ignore_patterns(".notewell"))
            words = ["index", "-w", str(workspace), "--set", f"provider={provider}"]
            subprocess.run([sys.executable, "-m", "notewell", *words], check=True, stdout=subprocess.DEVNULL)
            began = cold(workspace, provider, asked.repeats)
            print(f"{provider}: cold done", file=sys.stderr)
            calls = warm(workspace, provider, asked.calls)
            print(f"{provider}: warm done", file=sys.stderr)
            together = crowd(workspace, provider, asked.clients, asked.seconds)
            rows.append((began, calls, together))
        size = tokens(Path(folder) / "none")
    print(f"| | {' | '.join(began['mode'] for began, _, _ in rows)} |")
    print("|---|---|---|")
    for title, cells in (
        ("cold start to `initialize` answered", [_shown(began["initialize"]) for began, _, _ in rows]),
        ("cold start to first `memory_search` answered", [_shown(began["search"]) for began, _, _ in rows]),
        ("warm `memory_search`, p50", [f"{calls['through_ms']:.1f} ms" for _, calls, _ in rows]),
        ("of that search and rendering (in process)", [f"{calls['ours_ms']:.1f} ms" for _, calls, _ in rows]),
        ("an empty request (`ping`), p50", [f"{calls['empty_ms']:.1f} ms" for _, calls, _ in rows]),
        ("server CPU a search", [f"{calls['cpu_ms']:.1f} ms" for _, calls, _ in rows]),
        (
            f"{asked.clients} clients for {asked.seconds:g} s: calls, errors",
            [f"{crowded['calls']:,}, {len(crowded['errors'])}" for _, _, crowded in rows],
        ),
        (
            "p50, p95",
            [
                "none answered"
                if crowded["p50_ms"] is None
                else f"{crowded['p50_ms']:.0f} ms, {crowded['p95_ms']:.0f} ms"
                for _, _, crowded in rows
            ],
        ),
    ):
        print(f"| {title} | {' | '.join(cells)} |")
    print(
        f"\nAbout {size['list']:.0f} tokens for the list of {size['tools']} tools and {size['prompt']:.0f} for the "
        f"instructions ({CHARS_PER_TOKEN} characters a token)."
    )
    for _, _, crowded in rows:
        for error in crowded["errors"]:
            print(error, file=sys.stderr)


if __name__ == "__main__":
    main()
