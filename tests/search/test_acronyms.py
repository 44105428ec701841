"""Acronyms and the words they stand for, where a note explains one by the other."""

from __future__ import annotations

import pytest

from notewell import Memory
from notewell.search.acronyms import acronyms_of, explained_in
from notewell.types import Term


@pytest.mark.parametrize(
    ("text", "acronym", "forms"),
    [
        pytest.param("write-ahead logging (WAL)", "wal", {("write", "ahead", "log")}, id="in brackets"),
        pytest.param("WAL stands for write-ahead logging.", "wal", {("write", "ahead", "log")}, id="before"),
        pytest.param("WAL, or Write Ahead Logs", "wal", {("write", "ahead", "log")}, id="capitals and a plural"),
        pytest.param("wall: we all laugh", "wal", set(), id="a part of another word"),
        pytest.param("We always lose the wal.", "wal", set(), id="not written as an acronym"),
        pytest.param("WAL" + " and more" * 30 + " write-ahead logging", "wal", set(), id="too far away"),
    ],
)
def test_explanations(text, acronym, forms):
    assert explained_in(text, acronym) == forms


@pytest.fixture
def snapshot(tmp_path):
    notes = tmp_path / "memory"
    notes.mkdir()
    (notes / "glossary.md").write_text("WAL: write-ahead logging. SLO: service level objective.\n")
    (notes / "disk.md").write_text("The WAL grew.\n")
    with Memory.open(tmp_path, provider="none") as memory:
        memory.index()
        with memory._components.index.use() as store, store.reading() as opened:
            yield opened


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        pytest.param("size of the WAL", {"WAL": [Term(("write", "ahead", "log"))]}, id="the short form"),
        pytest.param("write-ahead logging", {"write ahead log": [Term(("wal",))]}, id="the long form"),
        pytest.param("WHERE IS THE WAL", {}, id="all in capitals"),
        pytest.param("IBM and the wal", {}, id="not explained, not an acronym"),
        pytest.param("", {}, id="nothing"),
    ],
)
def test_acronyms_of_a_question(snapshot, query, expected):
    assert acronyms_of(snapshot, query) == expected
