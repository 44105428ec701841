"""What every `Store` must do for privacy: keep private documents from groups, and leave nothing of what is removed."""

from __future__ import annotations

import pytest

from notewell.store.sqlite.segments import EXACT_LIMIT
from notewell.types import EVERYTHING, Scope
from tests.store.builders import IDENTITY, chunks_of, document, terms, vector_for, vectors_of

GROUP = Scope(public_only=True)
TEAM = Scope(public_only=True, own_transcripts=frozenset({"sessions/groups/team.json5"}))


def put(store, path, *texts, private=False, source="memory"):
    chunks = chunks_of(*texts)
    store.put_document(document(path, source=source)._replace(private=private), chunks, vectors_of(chunks))


def seen(store, word, scope, *, limit=50) -> set[str]:
    """Return the paths that words and vectors find; both must agree."""
    with store.reading() as snapshot:
        by_word = snapshot.keyword_matches(terms(word), limit=limit, scope=scope)
        by_vector = snapshot.vector_matches(vector_for(word), limit=limit, scope=scope)
        paths = [
            {chunk.path for chunk in snapshot.chunks([match.chunk_id for match in matches]).values()}
            for matches in (by_word, by_vector)
        ]
    assert paths[0] <= paths[1]
    return paths[1] if scope is not EVERYTHING else paths[0]


@pytest.fixture(params=[0, EXACT_LIMIT + 10], ids=["few vectors", "many vectors"])
def filled(request, store):
    store.set_embedder(IDENTITY, "int8")
    put(store, "memory/open.md", "harbour open")
    put(store, "MEMORY.md", "harbour curated", private=True)
    put(store, "sessions/groups/team.json5", "harbour team", source="sessions")
    put(store, "sessions/chats/mine.json5", "harbour mine", source="sessions")
    if request.param:
        put(store, "memory/private/many.md", *(f"harbour number {n}" for n in range(request.param)), private=True)
    return store


@pytest.mark.parametrize(
    ("scope", "paths"),
    [
        pytest.param(GROUP, {"memory/open.md"}, id="a group"),
        pytest.param(TEAM, {"memory/open.md", "sessions/groups/team.json5"}, id="a group with its session"),
        pytest.param(
            Scope(public_only=True, sources=frozenset({"sessions"})), set(), id="conversations, by a group without one"
        ),
    ],
)
def test_a_group_sees_only_what_is_for_all(filled, scope, paths):
    assert seen(filled, "harbour", scope) == paths


def test_a_document_can_become_private_and_open_again(store):
    store.set_embedder(IDENTITY, "int8")
    put(store, "memory/a.md", "harbour one")
    assert seen(store, "harbour", GROUP) == {"memory/a.md"}
    put(store, "memory/a.md", "harbour one", private=True)
    assert seen(store, "harbour", GROUP) == set()
    with store.reading() as snapshot:
        assert snapshot.documents()["memory", "memory/a.md"].private
    store.touch_documents([document("memory/a.md")])
    assert seen(store, "harbour", GROUP) == {"memory/a.md"}


def test_the_hashes_are_those_of_every_chunk(store):
    store.set_embedder(IDENTITY, "int8")
    chunks = chunks_of("one", "two", "two")
    store.put_document(document(), chunks, {})
    assert store.embedded_hashes() == {prepared.chunk.embedded_hash for prepared in chunks}
    store.remove_documents("memory", ["memory/a.md"])
    assert store.embedded_hashes() == set()


def test_erasing_leaves_the_rest_as_it_was(filled):
    put(filled, "memory/goes.md", "harbour zanzibarquux")
    before = seen(filled, "harbour", TEAM)
    filled.remove_documents("memory", ["memory/goes.md"])
    filled.erase_deleted()
    filled.erase_deleted()
    assert seen(filled, "harbour", TEAM) == before - {"memory/goes.md"}
    assert filled.verify() == []
