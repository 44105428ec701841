"""kill -9 while conversations are taken in piece by piece: what is there is in step, and the next run goes on."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest

from tests.indexing.contents import contents_of, faults_of
from tests.indexing.transcripts import append, documents_of, lines, open_memory, position_of

pytestmark = pytest.mark.slow

POINTS = 7  # a scenario
PIECE_CHARS = 3_000


def grow(talks: Path) -> None:
    append(talks / "a.jsonl", lines(300, 500))
    (talks / "b.jsonl").write_bytes(lines(500, 600))


def rewrite(talks: Path) -> None:
    (talks / "a.jsonl").write_bytes(lines(20, 280) + lines(600, 700))


SCENARIOS = {  # name -> (indexed before, what happened since, options of the run that is killed)
    "first index": (False, None, {}),
    "grown, no cache": (True, grow, {"cache": False}),
    "rewritten": (True, rewrite, {}),
    "rebuild": (True, grow, {"force": True}),
}


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_kill_9(worker, tmp_path, scenario):
    indexed, change, options = SCENARIOS[scenario]
    base, talks = tmp_path / "base", tmp_path / "talks"  # the talks stay where they are: a copy is another file
    talks.mkdir()
    (talks / "a.jsonl").write_bytes(lines(0, 300))
    with open_memory(base, talks) as memory:
        if indexed:
            memory.index()
        if change:
            change(talks)
    with open_memory(base, talks, store__path=str(tmp_path / "fresh")) as memory:
        memory.index()
        expected = contents_of(memory), documents_of(memory)

    def run(folder: Path, **point: object) -> dict[str, object]:
        sessions = {"sources": ["memory", "sessions"], "experimental__session_memory": True}
        sessions |= {"sessions__paths": [str(talks)]}
        return worker.index(folder, options=sessions, piece_chars=PIECE_CHARS, profile=True, **options, **point)

    calls = run(shutil.copytree(base, tmp_path / "counted"))["calls"]
    chance = random.Random(scenario)
    reached = set()
    for number in range(POINTS):
        folder = shutil.copytree(base, tmp_path / f"point{number}")
        assert run(folder, kill_at_call=chance.randrange(1, calls))["killed"]
        with open_memory(folder, talks) as memory:
            assert faults_of(memory) == []
            with memory._components.index.use() as store:
                if store is not None:
                    reached.add(position_of(memory, "sessions/@talks/a.jsonl"))
            report = memory.index()
            assert (report.pending, report.problems, report.complete) == (0, (), True)
            assert (contents_of(memory), documents_of(memory)) == expected
            assert faults_of(memory) == []
        shutil.rmtree(folder)
    if scenario == "first index":
        assert len(reached) > 2  # some were killed between two pieces, and went on from there
