"""However a conversation grew, was rewritten, moved or interrupted: its index is that of the file as it is."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st

from notewell import Memory
from notewell.chunking.lines import QUARTERS, chunk_dialogue, chunk_message, weigh
from notewell.indexing.plan import Deadline, SyncPolicy
from notewell.types import Document, FileStamp, SpokenLine
from tests.indexing.contents import contents_of, faults_of
from tests.indexing.transcripts import append, documents_of, lines, open_memory

BOUNDED = settings(
    max_examples=25,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    phases=[Phase.explicit, Phase.generate, Phase.shrink],
    derandomize=True,
)
NAMES = st.sampled_from(["a.jsonl", "b.jsonl", "deep/c.jsonl"])
TAILS = [
    lines(0, 1),
    lines(1, 9, words=60),
    lines(9, 60),
    b'{"torn": ',
    b"no JSON\n",
    b"\n",
    lines(60, 61)[:-1],  # whole, but for its newline
    b'{"type":"message","message":{"role":"toolResult","content":"noise"}}\n',
    lines(61, 62, words=900),
]
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), NAMES, st.integers(0, len(TAILS) - 1)),
        st.tuples(st.just("append"), NAMES, st.integers(0, len(TAILS) - 1)),
        st.tuples(st.just("cut"), NAMES, st.integers(0, 100)),
        st.tuples(st.just("replace"), NAMES, st.integers(0, len(TAILS) - 1)),
        st.tuples(st.just("overwrite"), NAMES, st.integers(0, 100)),
        st.tuples(st.just("rename"), NAMES, st.integers(0, 2)),
        st.tuples(st.just("delete"), NAMES, st.just(0)),
        st.tuples(st.just("touch"), NAMES, st.integers(1, 9)),
        st.tuples(st.sampled_from(["index", "search", "hurried", "rebuild"]), NAMES, st.just(0)),
        st.tuples(st.just("index"), NAMES, st.just(0)),
    ),
    min_size=1,
    max_size=16,
)


def change(file: Path, what: str, argument: int) -> None:
    """Do to a file what programs and people do."""
    if what == "append":
        file.parent.mkdir(parents=True, exist_ok=True)
        append(file, TAILS[argument])
    elif not file.exists():
        return
    elif what == "cut":
        with file.open("r+b") as handle:
            handle.truncate(file.stat().st_size * argument // 100)
    elif what == "replace":
        draft = file.with_suffix(".draft")
        draft.write_bytes(TAILS[argument] + file.read_bytes())
        draft.replace(file)
    elif what == "overwrite":
        with file.open("r+b") as handle:
            handle.seek(file.stat().st_size * argument // 100)
            handle.write(b"~")
        os.utime(file, ns=(argument, argument))  # within one tick of its clock a disk may not tell
    elif what == "rename":
        target = file.parent / f"renamed{argument}.jsonl"
        file.replace(target)
    elif what == "delete":
        file.unlink()
    elif what == "touch":
        os.utime(file, ns=(argument, argument))


def step(memory: Memory, talks: Path, what: str, name: str, argument: int) -> None:
    """Do one step of a history."""
    if what == "index":
        memory.index()
    elif what == "search":
        memory.search("harbour")
        memory.wait_until_synced(30)
    elif what == "hurried":
        memory._components.sync.run(SyncPolicy(deadline=Deadline.after(0.005)))
    elif what == "rebuild":
        memory.index(force=True)
    else:
        change(talks / name, what, argument)


@pytest.mark.slow
@BOUNDED
@given(history=STEPS)
@example(history=[("append", "a.jsonl", 2), ("index", "a.jsonl", 0), ("append", "a.jsonl", 1), ("index", "a.jsonl", 0)])
@example(history=[("append", "a.jsonl", 6), ("index", "a.jsonl", 0), ("append", "a.jsonl", 5), ("index", "a.jsonl", 0)])
@example(history=[("append", "a.jsonl", 6), ("index", "a.jsonl", 0), ("append", "a.jsonl", 3), ("index", "a.jsonl", 0)])
@example(history=[("append", "a.jsonl", 3), ("index", "a.jsonl", 0), ("append", "a.jsonl", 2), ("index", "a.jsonl", 0)])
@example(history=[("append", "a.jsonl", 8), ("index", "a.jsonl", 0), ("append", "a.jsonl", 8), ("index", "a.jsonl", 0)])
def test_any_history_ends_like_a_fresh_index(history, tmp_path_factory):
    base = tmp_path_factory.mktemp("history")
    talks = base / "talks"
    talks.mkdir()
    with open_memory(base / "workspace", talks) as memory:
        for what, name, argument in history:
            step(memory, talks, what, name, argument)
        memory.index()
        found, remembered = contents_of(memory), documents_of(memory)
        assert faults_of(memory) == []
        again = memory.index()
        assert (again.embedded, again.changed, again.added, again.removed) == (0, 0, 0, 0)
    with open_memory(base / "workspace", talks, store__path=str(base / "fresh")) as fresh:
        fresh.index()
        assert found == contents_of(fresh)
        assert remembered == documents_of(fresh)


SAID = st.lists(st.text(alphabet="ab 数.", max_size=300).map(lambda text: " ".join(text.split())), max_size=30)


@pytest.mark.slow
@settings(max_examples=150, derandomize=True)
@given(SAID, st.integers(1, 60))
def test_every_message_is_a_chunk_of_its_own_or_several(said, tokens):
    text = "\n".join(f"User: {text}\n\n" for text in said)
    chunks = chunk_dialogue(Document(FileStamp("sessions", "a", 0, 0), text, ""), tokens=tokens)
    messages = [SpokenLine(3 * number + 1, f"User: {text}", number + 1) for number, text in enumerate(said)]
    assert chunks == [chunk for each in messages for chunk in chunk_message(each, tokens=tokens)]
    for chunk in chunks:
        assert weigh(chunk.text) <= tokens * QUARTERS
        assert chunk.first_line == chunk.last_line == 3 * chunk.turn - 2
    everything = " ".join(chunk.text for chunk in chunks)
    assert all(word in everything for text in said for word in text.split() if weigh(word) < tokens // 2)
