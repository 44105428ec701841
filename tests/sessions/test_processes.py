"""Several processes at one store: nothing is lost, and one that is killed holds nobody up."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from pathlib import Path

import pyjson5
import pytest

from .conftest import texts

pytestmark = pytest.mark.slow

WORKER = Path(__file__).with_name("worker.py")
PROCESSES, APPENDS = 4, 250
KILLS = 12


def start(store, *words: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, str(WORKER), str(store.folder), *map(str, words)], stdout=subprocess.PIPE, text=True
    )


def test_four_processes_lose_no_append(store):
    name = store.create().session_id
    workers = [start(store, "append", name, f"p{number}", APPENDS) for number in range(PROCESSES)]
    for worker in workers:
        worker.communicate(timeout=240)
    assert [worker.returncode for worker in workers] == [0] * PROCESSES
    session = store.get(name)
    assert (
        len(session.messages) == PROCESSES * APPENDS == session.entry.message_count == store.entry(name).message_count
    )
    for number in range(PROCESSES):
        own = [text for text in texts(session) if text.startswith(f"p{number}-")]
        assert own == [f"p{number}-{step}" for step in range(APPENDS)]  # each in its own order, none twice
    assert len({message.id for message in session.messages}) == PROCESSES * APPENDS


def test_a_killed_lock_holder_holds_nobody_up(store, chat):
    holder = start(store, "hold", chat)
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    holder.kill()
    holder.wait(30)
    holder.stdout.close()
    store.append(chat, {"role": "user", "content": "free"})  # else SessionBusyError after the time-out of 5 s
    assert texts(store.get(chat))[-1] == "free"


@pytest.mark.parametrize("task", ["append", "everything"])
def test_a_process_killed_at_any_moment_loses_nothing_it_had_said(store, task):
    luck = random.Random(20261116)
    name = store.create().session_id
    said: list[str] = []
    for kill in range(KILLS):
        worker = start(store, task, name, f"k{kill}", 400)
        assert worker.stdout is not None
        for _ in range(luck.randint(1, 12)):
            worker.stdout.readline()
        time.sleep(luck.random() * 0.01)
        worker.kill()
        confirmed = worker.stdout.read().split()
        worker.wait(30)
        worker.stdout.close()
        session = store.get(name)
        kept = [*compacted(store, name), *texts(session)]
        own = [text for text in kept if text.startswith(f"k{kill}-")]
        assert own == [f"k{kill}-{number}" for number in range(len(own))]
        assert len(own) >= (int(confirmed[-1]) + 1 if confirmed else 0)
        said += own
        store.append(name, {"role": "user", "content": f"after {kill}"})
        said.append(f"after {kill}")
        assert store.entry(name).message_count == len(store.get(name).messages)
    assert [*compacted(store, name), *texts(store.get(name))] == said
    pyjson5.decode((store.folder / "registry.json5").read_text(encoding="utf-8"))


def compacted(store, name) -> list[str]:
    """Return the messages that summaries took the place of. A kill between the two steps keeps some twice."""
    total = sum(summary.original_message_count for summary in store.get(name).summaries)
    found: list[str] = []
    for path in sorted((store.folder / "compacted").glob(f"{name}.*.jsonl")):
        lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        found += [line["message"]["content"] for line in lines if line["type"] == "message"]
    return list(dict.fromkeys(found))[:total]
