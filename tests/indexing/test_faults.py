"""An embedder that fails, a run that is stopped, a cache that forgets: what is lost is the work in flight."""

from __future__ import annotations

import pytest

from notewell import BadVectorError, EmbedderError, Memory
from notewell.files.faults import planted
from notewell.indexing import indexer
from notewell.indexing.embedding_run import EMBED_BATCH

from .contents import contents_of, faults_of, fresh_contents
from .embedders import WatchedEmbedder, failing_at_call

POISON = "thermonuclear"


def refuse_poison(texts):
    if any(POISON in text for text in texts):
        raise BadVectorError("a vector is not a number")


@pytest.fixture
def many_notes(tmp_path):
    """A hundred notes of one chunk each."""
    folder = tmp_path / "many"
    (folder / "memory").mkdir(parents=True)
    for i in range(100):
        (folder / f"memory/n{i}.md").write_text(f"# Note {i}\n\nThe harbour keeps subject{i} in shed {i}.\n")
    return folder


def found(memory, query):
    return [hit.path for hit in memory.search(query, sync=False).hits]


# --- bad vectors --------------------------------------------------------------------------------


def test_a_poisoned_chunk_costs_one_chunk(many_notes):
    (many_notes / "memory/n7.md").write_text(f"# Note 7\n\nThe {POISON} shed keeps subject7.\n")
    with Memory.open(many_notes, embedder=WatchedEmbedder(refuse_poison)) as memory:
        report = memory.index()
        assert (report.embedded, report.pending, report.added) == (99, 1, 100)
        assert [problem.reason for problem in report.problems] == [
            "a chunk could not be embedded: a vector is not a number"
        ]
        assert found(memory, POISON)[0] == "memory/n7.md"
        assert found(memory, "subject8")[0] == "memory/n8.md"
        assert faults_of(memory) == []


def test_a_poisoned_chunk_is_tried_again_alone_and_embedded_once_it_is_fixed(many_notes):
    (many_notes / "memory/n7.md").write_text(f"# Note 7\n\nThe {POISON} shed.\n")
    with Memory.open(many_notes, embedder=WatchedEmbedder(refuse_poison)) as memory:
        memory.index()
    embedder = WatchedEmbedder(refuse_poison)
    with Memory.open(many_notes, embedder=embedder) as memory:
        assert memory.index().pending == 1
        assert (embedder.calls, embedder.embedded) == (1, 0)
        (many_notes / "memory/n7.md").write_text("# Note 7\n\nThe quiet shed.\n")
        report = memory.index()
        assert (report.embedded, report.pending, report.problems) == (1, 0, ())


def test_a_query_with_a_bad_vector_is_answered_by_keyword_and_says_so(many_notes):
    with Memory.open(many_notes, embedder=WatchedEmbedder(refuse_poison)) as memory:
        memory.index()
        answer = memory.search(f"subject5 {POISON}")
    assert answer.mode == "keyword"
    assert answer.hits[0].path == "memory/n5.md"
    assert any("a vector is not a number" in note for note in answer.notes)


# --- an embedder that stops answering -----------------------------------------------------------


@pytest.mark.parametrize("batches", [0, 1, 3])
def test_an_embedder_that_dies_keeps_what_it_did_and_all_of_the_text(many_notes, batches):
    dying = WatchedEmbedder(failing_at_call(batches + 1, EmbedderError("the provider hung up", hint="try later")))
    with Memory.open(many_notes, embedder=dying) as memory:
        report = memory.index()
        assert (report.complete, report.added, report.embedded) == (False, 100, batches * EMBED_BATCH)
        assert [problem.reason for problem in report.problems] == ["the provider hung up; try later"]
        assert dying.calls == batches + 1  # a terminal error is one call, not one a batch
        assert found(memory, "subject42")[0] == "memory/n42.md"
        assert faults_of(memory) == []
    well = WatchedEmbedder()
    with Memory.open(many_notes, embedder=well) as memory:
        report = memory.index()
        assert (report.complete, report.pending) == (True, 0)
    assert well.embedded == 100 - batches * EMBED_BATCH


def test_a_rebuild_whose_embedder_dies_goes_on_later(many_notes):
    with Memory.open(many_notes, provider="hashing", cache__enabled=False) as memory:
        memory.index()
    dying = WatchedEmbedder(failing_at_call(3, EmbedderError("the provider hung up")), dimensions=128)
    with Memory.open(many_notes, embedder=dying, cache__enabled=False) as memory:
        report = memory.index()
        assert (report.rebuilt, report.complete, report.embedded) == (False, False, 2 * EMBED_BATCH)
        assert any("stay in use" in note for note in report.notes)
        assert found(memory, "subject42")[0] == "memory/n42.md"
    with Memory.open(many_notes, provider="hashing", cache__enabled=False) as old:
        assert old.search("subject42", sync=False).mode == "hybrid"
    well = WatchedEmbedder(dimensions=128)
    with Memory.open(many_notes, embedder=well, cache__enabled=False) as memory:
        assert memory.index().pending == 0
    assert well.embedded == 100 - 2 * EMBED_BATCH


# --- a run that is stopped ----------------------------------------------------------------------


@pytest.mark.parametrize("batches", [0, 1, 2])
def test_a_stopped_rebuild_goes_on_where_it_stopped(many_notes, batches):
    with Memory.open(many_notes, provider="hashing", cache__enabled=False) as memory:
        memory.index()
    stopped = WatchedEmbedder(failing_at_call(batches + 1, KeyboardInterrupt()), dimensions=128)
    with Memory.open(many_notes, embedder=stopped, cache__enabled=False) as memory, pytest.raises(KeyboardInterrupt):
        memory.index()
    with Memory.open(many_notes, provider="hashing", cache__enabled=False) as old:
        answer = old.search("subject42", sync=False)
        assert (answer.mode, answer.hits[0].path) == ("hybrid", "memory/n42.md")  # the old index still answers
    resumed = WatchedEmbedder(dimensions=128)
    with Memory.open(many_notes, embedder=resumed, cache__enabled=False) as memory:
        report = memory.index()
        assert (report.rebuilt, report.pending) == (True, 0)
        assert resumed.embedded == 100 - batches * EMBED_BATCH
        assert memory.search("subject42").mode == "hybrid"
        assert len(list(memory._components.folder.path.glob("index-*.sqlite"))) == 1


def test_a_stopped_rebuild_takes_in_what_changed_meanwhile(many_notes):
    with Memory.open(many_notes, provider="hashing", cache__enabled=False) as memory:
        memory.index()
    stopped = WatchedEmbedder(failing_at_call(2, KeyboardInterrupt()), dimensions=128)
    with Memory.open(many_notes, embedder=stopped, cache__enabled=False) as memory, pytest.raises(KeyboardInterrupt):
        memory.index()
    (many_notes / "memory/n1.md").unlink()
    (many_notes / "memory/n2.md").write_text("# Note 2\n\nNow about a quokka.\n")
    with Memory.open(many_notes, embedder=WatchedEmbedder(dimensions=128), cache__enabled=False) as memory:
        report = memory.index()
        assert (report.rebuilt, report.removed, report.changed) == (True, 1, 1)
        assert found(memory, "quokka")[0] == "memory/n2.md"
        assert found(memory, "subject1") != ["memory/n1.md"]
        assert faults_of(memory) == []


def test_an_unchanged_second_run_asks_the_embedder_nothing(many_notes):
    embedder = WatchedEmbedder()
    with Memory.open(many_notes, embedder=embedder) as memory:
        memory.index()
        calls = embedder.calls
        before = contents_of(memory)
        memory.index()
        assert embedder.calls == calls
        assert contents_of(memory) == before


# --- a cache that forgets -----------------------------------------------------------------------


@pytest.mark.parametrize("entries", [1, 5, 50_000])
def test_a_cache_of_any_size_changes_nothing_but_the_work(many_notes, tmp_path, entries):
    with Memory.open(many_notes, provider="hashing", cache__max_entries=entries) as memory:
        memory.index()
        (many_notes / "memory/n3.md").rename(many_notes / "memory/moved.md")
        (many_notes / "memory/n4.md").write_text("# Note 4\n\nSomething else.\n")
        memory.index()
        memory.index(force=True)
        assert memory.cache.stats().entries <= entries
        assert contents_of(memory) == fresh_contents(many_notes, tmp_path / "fresh")
        assert faults_of(memory) == []


def test_a_cache_that_is_cleared_between_runs_breaks_nothing(many_notes, tmp_path):
    with Memory.open(many_notes, provider="hashing") as memory:
        memory.index()
        assert memory.cache.clear() == 100
        assert memory.index(force=True).embedded == 0  # the old index knows the vectors as well
        assert contents_of(memory) == fresh_contents(many_notes, tmp_path / "fresh")


def test_a_damaged_cache_is_replaced_and_the_index_is_right(many_notes, tmp_path):
    with Memory.open(many_notes, provider="hashing") as memory:
        memory.index()
        path = memory._components.folder.cache_path
    path.write_bytes(b"not a cache" * 1000)
    for suffix in ("-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)
    (many_notes / "memory/n4.md").write_text("# Note 4\n\nSomething else.\n")
    with Memory.open(many_notes, provider="hashing") as memory:
        assert memory.index().embedded == 1
        assert contents_of(memory) == fresh_contents(many_notes, tmp_path / "fresh")


# --- a run that is stopped while it reads --------------------------------------------------------


def stop_at_read(number):
    reads = 0

    def look(point):
        nonlocal reads
        reads += point == "index.read"
        if reads == number:
            raise KeyboardInterrupt

    return planted(look)


@pytest.mark.parametrize(
    ("text_at_once", "kept"),
    [
        pytest.param(indexer.TEXT_AT_ONCE, 64, id="a transaction of notes"),
        pytest.param(1, 89, id="large notes one by one"),
    ],
)
def test_ctrl_c_costs_only_the_notes_that_are_not_yet_written(many_notes, tmp_path, monkeypatch, text_at_once, kept):
    monkeypatch.setattr(indexer, "TEXT_AT_ONCE", text_at_once)
    with Memory.open(many_notes, provider="hashing") as memory:
        with stop_at_read(90), pytest.raises(KeyboardInterrupt):
            memory.index()
        assert memory.status().files == kept
        report = memory.index()
        assert (report.unchanged, report.added) == (kept, 100 - kept)
        assert contents_of(memory) == fresh_contents(many_notes, tmp_path / "fresh")
