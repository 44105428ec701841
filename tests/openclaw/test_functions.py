"""OpenClaw's small functions, held against the code and the numbers of its descriptions."""

from __future__ import annotations

import hashlib
import json
import math
import os
import random
import sqlite3
import struct
import threading
import time

import pytest

from notewell.errors import BadVectorError, NoteUnreadableError
from notewell.openclaw import (
    bm25_rank_to_score,
    build_file_entry,
    build_fts_query,
    chunk_id,
    chunk_markdown,
    cosine_similarity,
    hash_text,
    list_memory_files,
    merge_hybrid_results,
    parse_embedding,
    run_with_concurrency,
)

# --- hashes and ids ------------------------------------------------------------------------------


def test_hash_text_is_sha256_in_hex():
    assert hash_text("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"  # FIPS 180-2, B.1
    assert hash_text("메모리") == hashlib.sha256("메모리".encode()).hexdigest()


def test_a_chunk_id_is_the_hash_of_where_it_is_what_it_says_and_who_embedded_it():
    chunk = {"startLine": 1, "endLine": 40, "hash": "abc123"}
    written = "memory:docs/guide.md:1:40:abc123:text-embedding-3-small"
    assert chunk_id("memory", "docs/guide.md", chunk, "text-embedding-3-small") == hash_text(written)


# --- chunks --------------------------------------------------------------------------------------


def described_chunks(content: str, tokens: int, overlap: int) -> list[dict]:
    """OpenClaw's `chunkMarkdown` as it is described: lines above the limit are cut, trailing lines are carried over."""
    limit, carried = max(32, tokens * 4), max(0, overlap * 4)
    parts = [
        (number, line[start : start + limit])
        for number, line in enumerate(content.split("\n"), start=1)
        for start in range(0, max(1, len(line)), limit)
    ]
    chunks, current = [], []

    def size(lines):
        return sum(len(line) + 1 for _, line in lines)

    def flush():
        if current:
            text = "\n".join(line for _, line in current)
            chunks.append(
                {"startLine": current[0][0], "endLine": current[-1][0], "text": text, "hash": hash_text(text)}
            )

    for part in parts:
        if current and size(current) + len(part[1]) + 1 > limit:
            flush()
            first = len(current)
            while carried and first and size(current[first:]) < carried:
                first -= 1
            current = current[first:]
        current.append(part)
    flush()
    return chunks


def simple_chunks(content: str, chunk_size: int = 2048) -> list[dict]:
    """`chunk_markdown` of the simple manager in Python, as it is printed."""
    lines = content.split("\n")
    chunks = []
    current = []
    current_chars = 0
    for i, line in enumerate(lines):
        line_size = len(line) + 1
        if current_chars + line_size > chunk_size and current:
            text = "\n".join(current)
            chunks.append({"startLine": i - len(current) + 1, "endLine": i, "text": text, "hash": hash_text(text)})
            current = []
            current_chars = 0
        current.append(line)
        current_chars += line_size
    if current:
        text = "\n".join(current)
        chunks.append(
            {
                "startLine": len(lines) - len(current) + 1,
                "endLine": len(lines),
                "text": text,
                "hash": hash_text(text),
            }
        )
    return chunks


def note(seed: int, longest_line: int) -> str:
    rng = random.Random(seed)
    return "\n".join("x" * rng.randint(1, longest_line) for _ in range(rng.randint(1, 200)))


def test_chunks_of_ten_lines_by_hand():
    lines = [f"line {number} " + "x" * 13 for number in range(10)]  # 20 characters, 21 with the newline
    chunks = chunk_markdown("\n".join(lines), tokens=20, overlap=5)  # at most 80 characters, 20 carried over
    # Three lines are 63 characters, a fourth would make 84; one line (21) reaches the 20 that are carried over.
    assert [(chunk["startLine"], chunk["endLine"]) for chunk in chunks] == [(1, 3), (3, 5), (5, 7), (7, 9), (9, 10)]
    assert chunks[0]["text"] == "\n".join(lines[:3])
    assert chunks[0]["hash"] == hash_text(chunks[0]["text"])


def test_the_defaults_are_1600_characters_with_320_carried_over():
    lines = ["y" * 79] * 100  # 80 with the newline: 20 lines fill a chunk, 4 are carried over
    chunks = chunk_markdown("\n".join(lines))
    assert [(chunk["startLine"], chunk["endLine"]) for chunk in chunks[:3]] == [(1, 20), (17, 36), (33, 52)]


@pytest.mark.parametrize("seed", range(20))
def test_chunks_are_those_of_the_description(seed):
    content = note(seed, longest_line=70)  # what is carried over and the next line always fit together
    assert chunk_markdown(content) == described_chunks(content, 400, 80)
    assert chunk_markdown(content, tokens=512, overlap=128) == described_chunks(content, 512, 128)


@pytest.mark.parametrize("seed", range(20))
def test_without_overlap_chunks_are_those_of_the_simple_manager(seed):
    content = note(seed, longest_line=500)
    assert chunk_markdown(content, tokens=512, overlap=0) == simple_chunks(content)


def test_the_limit_is_never_below_32_characters():
    assert [chunk["text"] for chunk in chunk_markdown("a" * 40, tokens=1, overlap=0)] == ["a" * 32, "a" * 8]


def test_a_chunk_never_exceeds_the_limit_where_the_described_one_does():
    content = "\n".join(["a" * 1500, "b" * 1500])
    assert max(len(chunk["text"]) for chunk in described_chunks(content, 400, 80)) == 3001
    assert [len(chunk["text"]) for chunk in chunk_markdown(content)] == [1500, 1500]


def test_blank_text_has_no_chunks():
    assert chunk_markdown("") == chunk_markdown("\n\n  \n") == []


# --- vectors -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        pytest.param([1, 2, 3], [2, 4, 6], 1.0, id="same direction"),
        pytest.param([1, 0], [0, 1], 0.0, id="right angle"),
        pytest.param([1, 0], [-1, 0], -1.0, id="opposite"),
        pytest.param([3, 4], [4, 3], 24 / 25, id="by hand"),
        pytest.param([0, 0], [1, 1], 0.0, id="a zero vector is like nothing"),
        pytest.param([], [], 0.0, id="no dimensions"),
    ],
)
def test_cosine_similarity(a, b, expected):
    assert cosine_similarity(a, b) == pytest.approx(expected)


def test_vectors_of_different_models_are_not_compared():
    with pytest.raises(BadVectorError, match="2 and 3 dimensions"):
        cosine_similarity([1, 2], [1, 2, 3])


def test_parse_embedding_reads_json_and_floats():
    assert parse_embedding("[0.25, -1, 2e-3]") == [0.25, -1.0, 0.002]
    assert parse_embedding(struct.pack("<3f", 0.25, -1.0, 2.0)) == [0.25, -1.0, 2.0]
    assert parse_embedding(memoryview(b"")) == []


@pytest.mark.parametrize(
    "raw",
    ["", "{}", "[1, null]", "[true]", '["1"]', "[NaN]", "[1e999]", "not json", b"12345", struct.pack("<f", math.nan)],
)
def test_parse_embedding_refuses_what_is_no_vector(raw):
    with pytest.raises(BadVectorError):
        parse_embedding(raw)


# --- keyword queries -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        pytest.param("hello world", '"hello" AND "world"', id="the example"),
        pytest.param("메모리 검색 어떻게?", '"메모리" AND "검색" AND "어떻게"', id="letters of any script"),
        pytest.param('say "NEAR(a b)" OR x_1', '"say" AND "NEAR" AND "a" AND "b" AND "OR" AND "x_1"', id="operators"),
        pytest.param("e-mail", '"e" AND "mail"', id="a hyphen parts words"),
        pytest.param(" ?! ", None, id="no words"),
    ],
)
def test_build_fts_query(raw, expected):
    assert build_fts_query(raw) == expected


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        pytest.param("Guest WiFi password?", "guest* OR wifi* OR password*", id="lower case, without marks"),
        pytest.param("a to-do b", "to-do*", id="single characters are left out"),
        pytest.param("메모리", None, id="only ASCII"),
    ],
)
def test_build_fts_query_of_prefixes(raw, expected):
    assert build_fts_query(raw, prefixes=True) == expected


@pytest.fixture
def fts():
    db = sqlite3.connect(":memory:")
    db.execute("CREATE VIRTUAL TABLE chunks USING fts5(text)")
    db.executemany("INSERT INTO chunks VALUES (?)", [("the wifi password",), ("the wifi name",), ("wifis passed",)])
    yield lambda query: [
        row[0] for row in db.execute("SELECT rowid FROM chunks WHERE chunks MATCH ? ORDER BY rowid", (query,))
    ]
    db.close()


def test_fts5_takes_the_queries(fts):
    assert fts(build_fts_query('the "wifi" password')) == [1]
    assert fts(build_fts_query("wifi NEAR")) == []
    assert fts(build_fts_query("wifi pass", prefixes=True)) == [1, 2, 3]


def test_fts5_refuses_a_prefix_with_a_hyphen(fts):
    with pytest.raises(sqlite3.OperationalError):
        fts(build_fts_query("to-do", prefixes=True))


# --- scores --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rank", "score"),
    [(0, 1.0), (1, 0.5), (3, 0.25), (-4.2, 1.0), (math.inf, 0.001), (-math.inf, 0.001), (math.nan, 0.001)],
)
def test_bm25_rank_to_score(rank, score):
    assert bm25_rank_to_score(rank) == pytest.approx(score)


def found(name: str, **values) -> dict:
    place = {"path": f"memory/{name}.md", "startLine": 1, "endLine": 4, "source": "memory", "snippet": name}
    return {"id": name, **place, **values}


def scores(results: list[dict]) -> dict[str, float]:
    return {result["path"][7:-3]: result["score"] for result in results}


def test_weighted_results_by_hand():
    merged = merge_hybrid_results(
        [found("both", vectorScore=0.8), found("vector", vectorScore=0.9)],
        [found("both", textScore=0.5, snippet="better"), found("text", textScore=1.0)],
    )
    assert scores(merged) == pytest.approx({"both": 0.7 * 0.8 + 0.3 * 0.5, "vector": 0.63, "text": 0.3})
    assert list(scores(merged)) == ["both", "vector", "text"]
    assert merged[0] == {
        "path": "memory/both.md",
        "startLine": 1,
        "endLine": 4,
        "source": "memory",
        "snippet": "better",
        "score": pytest.approx(0.71),
    }


def test_an_empty_keyword_snippet_does_not_replace_the_other():
    merged = merge_hybrid_results([found("a", vectorScore=1)], [found("a", textScore=1, snippet="")])
    assert merged[0]["snippet"] == "a"


def test_reciprocal_rank_fusion_by_hand():
    merged = merge_hybrid_results(
        [found("first"), found("both")], [found("both"), found("last")], fusion="rrf", limit=2
    )
    assert scores(merged) == pytest.approx({"both": 0.7 / 61 + 0.3 / 60, "first": 0.7 / 60})
    assert list(scores(merged)) == ["both", "first"]


def test_results_without_an_id_are_the_same_by_their_place():
    here = {"source": "memory", "path": "a.md", "startLine": 1, "endLine": 2}
    elsewhere = here | {"path": "b.md"}  # the described key leaves the path out when `source` is not one
    merged = merge_hybrid_results([here], [here, elsewhere], fusion="rrf")
    assert [(result["path"], result["score"]) for result in merged] == [
        ("a.md", pytest.approx(1 / 60)),
        ("b.md", pytest.approx(0.3 / 61)),
    ]


# --- concurrency ---------------------------------------------------------------------------------


def test_tasks_run_side_by_side_and_results_keep_their_order():
    running, most, lock = 0, 0, threading.Lock()

    def task(number):
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        time.sleep(0.002 * (5 - number % 5))
        with lock:
            running -= 1
        return number

    assert run_with_concurrency([lambda n=n: task(n) for n in range(20)], 4) == list(range(20))
    assert 2 <= most <= 4


def test_after_an_error_no_further_task_is_started():
    started = []

    def task(number):
        started.append(number)
        if number == 2:
            raise ValueError("broken")
        return number

    with pytest.raises(ValueError, match="broken"):
        run_with_concurrency([lambda n=n: task(n) for n in range(100)], 1)
    assert started == [0, 1, 2]


def test_a_limit_below_one_is_one_and_no_tasks_are_no_work():
    assert run_with_concurrency([], 4) == []
    assert run_with_concurrency([lambda: 1, lambda: 2], 0) == [1, 2]


# --- files ---------------------------------------------------------------------------------------


def test_memory_files_are_those_of_the_description(tmp_path, caplog):
    workspace, outside = tmp_path / "workspace", tmp_path / "outside"
    for file in ("MEMORY.md", "memory/a.md", "memory/deep/b.md", "memory/c.txt", "README.md", "docs/d.md"):
        (workspace / file).parent.mkdir(parents=True, exist_ok=True)
        (workspace / file).write_text(file)
    outside.mkdir()
    (outside / "e.md").write_text("e")
    (workspace / "memory" / "link.md").symlink_to(workspace / "README.md")
    listed = list_memory_files(workspace, ["docs", outside, "memory", "missing"])
    expected = ["MEMORY.md", "docs/d.md", "memory/a.md", "memory/deep/b.md"]
    assert sorted(listed) == sorted([*(str(workspace / path) for path in expected), str(outside / "e.md")])
    assert "link.md" in caplog.text
    assert "missing" in caplog.text


def test_memory_files_of_a_relative_workspace_are_absolute(workspace, monkeypatch):
    monkeypatch.chdir(workspace.parent)
    assert list_memory_files("workspace") == list_memory_files(workspace)


def test_a_file_entry_has_the_facts_of_the_file(tmp_path):
    file = tmp_path / "memory" / "tea.md"
    file.parent.mkdir()
    file.write_bytes("Tè\r\n".encode())
    os.utime(file, ns=(0, 1_700_000_000_123_000_000))
    assert build_file_entry(file, tmp_path) == {
        "path": "memory/tea.md",
        "absPath": str(file),
        "mtimeMs": 1_700_000_000_123.0,
        "size": 5,
        "hash": hash_text("Tè\r\n"),
    }
    assert json.dumps(build_file_entry(str(file), str(tmp_path)))


def test_a_file_entry_of_a_missing_file_is_an_error(tmp_path):
    with pytest.raises(NoteUnreadableError, match=r"gone\.md"):
        build_file_entry(tmp_path / "gone.md", tmp_path)


def test_a_file_entry_of_a_link_has_the_facts_of_its_target(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "tea.md").write_text("Tea.\n")
    (tmp_path / "linked").symlink_to("real")
    (tmp_path / "real" / "other.md").symlink_to("tea.md")
    entry = build_file_entry(tmp_path / "linked" / "other.md", tmp_path)
    assert (entry["path"], entry["size"], entry["hash"]) == ("linked/other.md", 5, hash_text("Tea.\n"))


def test_a_file_entry_of_a_huge_file_is_an_error(tmp_path):
    file = tmp_path / "huge.md"
    file.touch()
    os.truncate(file, 2 * 10**9)  # sparse: it takes no room on the disk, but would in memory
    with pytest.raises(NoteUnreadableError, match="larger than 64 MB"):
        build_file_entry(file, tmp_path)
