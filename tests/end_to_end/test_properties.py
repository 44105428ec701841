"""What must hold for every history of edits, every query and every corpus."""

from __future__ import annotations

import os
import random
import re
import shutil
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st

from notewell import Memory
from notewell.chunking import chunk_document
from notewell.search.query import query_terms
from notewell.sources.notes import NotesSource
from notewell.text.lexicon import index_terms
from tests.indexing.contents import contents_of, faults_of, fresh_contents

pytestmark = pytest.mark.slow

BOUNDED = settings(
    max_examples=50,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    phases=[Phase.explicit, Phase.generate, Phase.shrink],
    derandomize=True,
)

# --- incremental equals fresh -------------------------------------------------------------------

NAMES = ["MEMORY.md", "memory/a.md", "memory/b.md", "memory/deep/c.md", "memory/2026-03-04.md", "memory/数.md"]
TEXTS = [
    "",
    "# One\n\nThe harbour keeps a note.\n",
    "# One\n\nThe harbour keeps another note.\n",
    "---\ntitle: Subject\n---\n\n# Two\n\nBody of the subject.\n\n## Part\n\nMore of it.\n",
    "\n".join(f"## Section {i}\n\nNote {i} about subject{i}. " + "Word after word. " * 60 for i in range(4)),
    "数据库迁移\r\n\r\n下周进行。\r\n",
    "no newline at the end \x00 \ufeff",
]
EDITS = st.lists(
    st.one_of(
        st.tuples(st.just("write"), st.sampled_from(NAMES), st.sampled_from(TEXTS)),
        st.tuples(st.just("append"), st.sampled_from(NAMES), st.sampled_from(["\nOne more line.\n", "x"])),
        st.tuples(st.just("prepend"), st.sampled_from(NAMES), st.sampled_from(["# Top\n\n", "New first line.\n\n"])),
        st.tuples(st.just("rename"), st.sampled_from(NAMES), st.sampled_from(NAMES)),
        st.tuples(st.just("copy"), st.sampled_from(NAMES), st.sampled_from(NAMES)),
        st.tuples(st.just("delete"), st.sampled_from(NAMES), st.just("")),
        st.tuples(st.just("touch"), st.sampled_from(NAMES), st.sampled_from(["100", "2000000000"])),
        st.tuples(st.just("index"), st.just(""), st.sampled_from(["", "force", "budget"])),
    ),
    min_size=1,
    max_size=14,
)


def edit(folder: Path, memory: Memory, what: str, name: str, argument: str) -> None:
    """Do one step of a history."""
    file = folder / name
    if what == "index":
        if argument == "budget":
            memory.search("note")
        else:
            memory.index(force=argument == "force")
    elif what == "write":
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(argument, encoding="utf-8", newline="")
    elif not file.is_file():
        return
    elif what in {"append", "prepend"}:
        text = file.read_text(encoding="utf-8")
        file.write_text(text + argument if what == "append" else argument + text, encoding="utf-8", newline="")
    elif what in {"rename", "copy"}:
        target = folder / argument
        target.parent.mkdir(parents=True, exist_ok=True)
        if target != file:
            shutil.copy(file, target)
            if what == "rename":
                file.unlink()
    elif what == "delete":
        file.unlink()
    else:
        os.utime(file, (int(argument), int(argument)))


@BOUNDED
@given(history=EDITS)
@example(history=[("write", "memory/a.md", TEXTS[1]), ("index", "", ""), ("write", "memory/a.md", TEXTS[2])])
@example(history=[("write", "memory/a.md", TEXTS[4]), ("index", "", ""), ("rename", "memory/a.md", "memory/b.md")])
@example(
    history=[
        ("write", "memory/a.md", TEXTS[4]),
        ("copy", "memory/a.md", "memory/b.md"),
        ("index", "", ""),
        ("delete", "memory/a.md", ""),
        ("index", "", "budget"),
    ]
)
def test_any_history_of_edits_ends_like_a_fresh_index(history, tmp_path_factory):
    base = tmp_path_factory.mktemp("history")
    folder = base / "workspace"
    folder.mkdir()
    with Memory.open(folder, provider="hashing") as memory:
        for step in history:
            edit(folder, memory, *step)
        report = memory.index()
        assert (report.pending, report.problems) == (0, ())
        assert contents_of(memory) == fresh_contents(folder, base / "fresh")
        assert faults_of(memory) == []
        assert memory.index().embedded == 0


# --- the best k are the first k of the best k+n --------------------------------------------------

WORDS = (
    "harbour boat printer network queue postgres backup garden tea Lisbon the of database 数据库 バックアップ".split()
)
SEARCH_SETTINGS = {
    "plain": {},
    "decay": {"query__decay__enabled": True},
    "diversity": {"query__diversity__enabled": True},
    "both": {"query__decay__enabled": True, "query__diversity__enabled": True},
    "few candidates": {"query__hybrid__candidate_multiplier": 1},
}


@pytest.fixture(scope="module")
def memories(tmp_path_factory):
    """The example workspace, once for each of the settings that shape the order; they share one index."""
    folder = tmp_path_factory.mktemp("order") / "workspace"
    source = Path(__file__).parents[2] / "examples" / "workspace"
    shutil.copytree(source, folder, ignore=shutil.ignore_patterns(".notewell"))
    with Memory.open(folder, provider="hashing") as memory:
        memory.index()
    opened = {name: Memory.open(folder, provider="hashing", **more) for name, more in SEARCH_SETTINGS.items()}
    yield opened
    for memory in opened.values():
        memory.close()


@settings(BOUNDED, max_examples=40)
@given(
    query=st.lists(st.sampled_from(WORDS), min_size=1, max_size=5).map(" ".join) | st.text(max_size=12),
    fusion=st.sampled_from(["balanced", "weighted", "rrf"]),
    shape=st.sampled_from(list(SEARCH_SETTINGS)),
    min_score=st.sampled_from([0.0, 0.2, 0.35]),
    keyword_only=st.booleans(),
)
def test_the_best_k_are_the_first_of_the_best_k_plus_n(memories, query, fusion, shape, min_score, keyword_only):
    def ask(limit):
        return (
            memories[shape]
            .search(query, limit=limit, min_score=min_score, fusion=fusion, keyword_only=keyword_only, sync=False)
            .hits
        )

    candidates = memories[shape].settings.query.hybrid.candidates_per_side  # more results raise this number
    everything = ask(candidates)
    for limit in (1, 2, 3, 6, 10, 15, 23, 24, 25, 50, 51):
        if limit <= candidates:
            assert ask(limit) == everything[:limit]
    assert len({(hit.path, hit.first_line, hit.last_line) for hit in everything}) == len(everything)


# --- every chunk can be found -------------------------------------------------------------------

SYLLABLES = "ba be bi bo bu da de di do du ka ke ki ko ku la le li lo lu ma me mi mo mu na ne ni no nu".split()
FINDABLE = 5  # a page of hits


def written_corpus(folder: Path, chunks: int, seed: int) -> None:
    """Write notes of one to five sections, a chunk each, with words that follow Zipf's law as those of people do."""
    chance = random.Random(seed)
    vocabulary = sorted({"".join(chance.choices(SYLLABLES, k=chance.randint(2, 4))) for _ in range(3_000)})
    weights = [1 / (rank + 1) for rank in range(len(vocabulary))]
    (folder / "memory").mkdir(parents=True)
    written = 0
    while written < chunks:
        sections = min(chance.randint(1, 5), chunks - written)
        parts = []
        for i in range(written, written + sections):
            sentence = " ".join(chance.choices(vocabulary, weights, k=chance.randint(5, 12)))
            rest = " ".join(chance.choices(vocabulary, weights, k=chance.randint(20, 60)))
            parts.append(f"## Part {i}\n\n{sentence.capitalize()} mark{i}. {rest.capitalize()}.\n")
        (folder / f"memory/note{written}.md").write_text("\n".join(parts), encoding="utf-8")
        written += sections


def findings(folder: Path, every: int = 1) -> list[tuple[str, str, str]]:
    """Return (where, what was asked, query) for every chunk that its rarest token or first sentence does not find."""
    source = NotesSource(folder, ())
    places = [
        (stamp.path, chunk)
        for stamp in source.list().files
        for chunk in chunk_document(source.read(stamp), style="markdown", tokens=400, overlap=80)
    ]
    frequency: dict[str, int] = {}
    for _, chunk in places:
        for term in set(index_terms(chunk.text).split()):
            frequency[term] = frequency.get(term, 0) + 1
    missed = []
    with Memory.open(folder, provider="hashing") as memory:
        memory.index()
        for path, chunk in places[::every]:
            asked = {
                "rarest token": min(
                    searchable_words(chunk.text), key=lambda word: (frequency_of(word, frequency), word)
                ),
                "first sentence": first_sentence(chunk.text),
            }
            for what, query in asked.items():
                for keyword_only in (False, True):
                    hits = memory.search(query, limit=FINDABLE, sync=False, keyword_only=keyword_only).hits
                    if (path, chunk.first_line) not in {(hit.path, hit.first_line) for hit in hits}:
                        missed.append((f"{path}:{chunk.first_line}", what, query))
    return missed


def searchable_words(text: str) -> list[str]:
    return [word for word in re.findall(r"\w+", text) if query_terms(word)]


def frequency_of(word: str, frequency: dict[str, int]) -> int:
    return max(frequency.get(term, 0) for term in index_terms(word).split())


def first_sentence(text: str) -> str:
    body = re.sub(r"^#.*\n+", "", text)
    return re.split(r"(?<=[.!?。])\s", body, maxsplit=1)[0]


@pytest.mark.parametrize("chunks", [1, 2, 3, 100])
@pytest.mark.parametrize("seed", [1, 2])
def test_every_chunk_is_found_by_its_rarest_token_and_its_first_sentence(tmp_path, chunks, seed):
    written_corpus(tmp_path / "corpus", chunks, seed)
    assert findings(tmp_path / "corpus") == []


@pytest.mark.skipif("LONG_TESTS" not in os.environ, reason="takes minutes: set LONG_TESTS=1")
def test_every_chunk_of_ten_thousand_is_found(tmp_path):
    written_corpus(tmp_path / "corpus", 10_000, 3)
    assert findings(tmp_path / "corpus", every=7) == []


def test_every_chunk_of_the_example_is_found_by_its_rarest_token(tmp_path):
    folder = tmp_path / "example"
    source = Path(__file__).parents[2] / "examples" / "workspace"
    shutil.copytree(source, folder, ignore=shutil.ignore_patterns(".notewell"))
    assert [miss for miss in findings(folder) if miss[1] == "rarest token"] == []
