"""Against what OpenClaw 2026.2 really answered on one workspace: at least what it found is found, and more."""

from __future__ import annotations

import json
import shutil

import pytest

from notewell import Memory, NoteNotFoundError, PathRefusedError, QueryError
from tests.postgres_server import store_settings

CHUNKS = 60  # more than the golden workspace has under our chunking
DAY = "2026-01-05"
CJK = {
    "数据库迁移": "memory/cjk/notes-zh.md",
    "データベースのバックアップ": "memory/cjk/notes-ja.md",
    "데이터베이스": "memory/cjk/notes-ko.md",
}


@pytest.fixture(scope="module", params=["sqlite", pytest.param("postgres", marks=pytest.mark.slow)])
def memory(request, golden, tmp_path_factory):
    """The golden workspace, indexed with the vectors that were recorded, in each storage engine."""
    folder = shutil.copytree(golden / "workspace", tmp_path_factory.mktemp("golden") / "workspace")
    with Memory.open(folder, provider="hashing", **store_settings(request.param)) as opened:
        opened.index()
        yield opened


@pytest.fixture(scope="module")
def recorded(golden):
    """What OpenClaw 2026.2 answered, by variant, then by query."""
    answers = json.loads((golden / "openclaw-2026.2/search_results.json").read_text(encoding="utf-8"))
    return {name: variant["queries"] for name, variant in answers["variants"].items()}


def files(hits):
    return {hit["path"] for hit in hits}


def found(memory, query, **options):
    return [hit.path for hit in memory.search(query, sync=False, **options).hits]


def test_the_same_files_are_indexed(golden, memory):
    theirs = json.loads((golden / "openclaw-2026.2/files.json").read_text(encoding="utf-8"))
    with memory._components.index.use() as store, store.reading() as snapshot:
        ours = {path: document.content_hash for (_, path), document in snapshot.documents().items()}
    assert ours == {file["path"]: file["hash"] for file in theirs}
    assert not {"notes-outside.md", "USER.md"} & set(ours)


def test_every_file_found_at_minimum_score_zero_is_found(memory, recorded):
    answers = recorded["default/minscore0_max10"]
    assert len(answers) == 25
    assert found(memory, DAY, limit=CHUNKS, min_score=0) == [f"memory/{DAY}.md", "MEMORY.md"]  # of it, and naming it
    missing = {
        query: files(hits) - set(found(memory, query, limit=CHUNKS, min_score=0))
        for query, hits in answers.items()
        if query != DAY
    }
    assert {query: paths for query, paths in missing.items() if paths} == {}


def test_every_file_it_thought_worth_showing_is_among_our_first_ten(memory, recorded):
    """At its own minimum score it showed only what it was sure of; its ten at zero are mostly noise that fills up."""
    answers = recorded["default/default"]
    assert sum(map(len, answers.values())) > 10
    missing = {query: files(hits) - set(found(memory, query, limit=10, min_score=0)) for query, hits in answers.items()}
    assert {query: paths for query, paths in missing.items() if paths} == {}


def test_its_first_hit_is_found_at_our_defaults(memory, recorded):
    missing = {
        query: hits[0]["path"]
        for query, hits in recorded["default/default"].items()
        if hits and hits[0]["path"] not in found(memory, query)
    }
    assert missing == {}


@pytest.mark.parametrize(("query", "path"), CJK.items())
@pytest.mark.parametrize("keyword_only", [False, True], ids=["both", "keywords"])
def test_what_it_misses_in_chinese_japanese_and_korean_is_our_first_hit(memory, recorded, query, path, keyword_only):
    assert recorded["default/default"][query] == []
    assert found(memory, query, keyword_only=keyword_only)[0] == path


@pytest.mark.parametrize(
    ("query", "path"),
    [
        ("PostgreSQL", "memory/2026-11-14-session-notes.md"),
        ("who runs the design team", "MEMORY.md"),
        ("memory/topics.md", "memory/topics.md"),
        ("ECONNREFUSED 127.0.0.1:5432", "memory/2026-01-05.md"),
        ("snake_case_identifier", "memory/code.md"),
        ("zebra protocol", "memory/crlf.md"),
        ("incident certificate", "memory/projects/billing/2026-02-03-incident.md"),
        ("2026-01-05", "memory/2026-01-05.md"),
    ],
)
def test_the_right_note_is_first_at_our_defaults(memory, golden, query, path):
    text = (golden / "workspace" / path).read_text(encoding="utf-8")
    assert text
    assert found(memory, query)[0] == path


# --- reading ------------------------------------------------------------------------------------

# Where we differ on purpose, and how: a missing note is an error instead of an empty text, a path has one spelling,
# and zero lines cannot be asked for.
DIFFERENT = {
    "memory/missing.md": NoteNotFoundError,
    "memory.md": NoteNotFoundError,
    "memory/../MEMORY.md": PathRefusedError,
    "$WORKSPACE/memory/code.md": PathRefusedError,
}


def test_reading_agrees_where_it_should(golden, memory):
    answers = json.loads((golden / "openclaw-2026.2/read_file.json").read_text(encoding="utf-8"))
    assert len(answers) == 15
    agreed = 0
    for answer in answers:
        arguments = answer["args"]
        path = arguments["relPath"]
        first_line, lines = arguments.get("from", 1), arguments.get("lines")
        if path in DIFFERENT or "error" in answer or lines == 0:
            refused = (DIFFERENT.get(path, PathRefusedError), QueryError)
            with pytest.raises(refused):
                memory.get(path.replace("$WORKSPACE", str(memory.workspace)), first_line=first_line, lines=lines)
        else:
            note = memory.get(path, first_line=first_line, lines=lines)
            expected = answer["result"]["text"].replace("\r\n", "\n")
            assert note.text.rstrip("\n") == expected.rstrip("\n")
            assert note.path == answer["result"]["path"]
            agreed += 1
    assert agreed == 5
