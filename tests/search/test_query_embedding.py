"""Without a vector for the question the answer says why keyword search answered alone."""

from __future__ import annotations

import pytest

from notewell import Memory
from notewell.embedding.hashing import HashingEmbedder


class EnglishOnly(HashingEmbedder):
    """Supports ASCII only, and counts the queries it embeds."""

    def __init__(self) -> None:
        super().__init__()
        self.queries: list[str] = []

    def knows(self, text):
        return text.isascii()

    def embed_query(self, text):
        self.queries.append(text)
        return super().embed_query(text)


@pytest.fixture
def embedder():
    return EnglishOnly()


@pytest.fixture
def memory(tmp_path, embedder):
    (tmp_path / "memory").mkdir()
    (tmp_path / "memory" / "nas.md").write_text("The backup runs at night.\n", encoding="utf-8")
    with Memory.open(tmp_path, embedder=embedder) as opened:
        yield opened


def test_a_question_in_a_language_that_the_model_does_not_support(memory, embedder):
    answer = memory.search("резервная копия backup")
    assert (answer.mode, answer.hits[0].path) == ("keyword", "memory/nas.md")
    assert answer.notes == ("keyword search only: signed-word-bag does not support this language",)
    assert not embedder.queries


def test_notes_in_a_language_that_the_model_does_not_support(memory, tmp_path):
    (tmp_path / "memory" / "nas.md").write_text("Резервная копия идёт ночью.\n", encoding="utf-8")
    memory.index()
    answer = memory.search("backup")
    assert answer.mode == "keyword"
    assert answer.notes == ("keyword search only: signed-word-bag does not support the language of any note",)


def test_the_same_question_is_embedded_once(memory, embedder):
    assert [memory.search("backup", limit=limit).mode for limit in (1, 5)] == ["hybrid", "hybrid"]
    assert embedder.queries == ["backup"]
