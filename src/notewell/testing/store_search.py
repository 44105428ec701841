"""Checks what a store finds: keywords, scopes, dates, vectors and privacy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import date
from typing import TYPE_CHECKING

import numpy as np
import pytest

from notewell.errors import BadVectorError
from notewell.testing.samples import (
    DIMENSIONS,
    IDENTITY,
    StoreFixtures,
    chunks_of,
    document,
    embed_pending,
    ids_by_text,
    prepared,
    terms,
    vector_for,
    vectors_of,
    with_terms,
)
from notewell.types import EVERYTHING, Chunk, EntryLabel, Match, Scope, SourceName, Term

if TYPE_CHECKING:
    from notewell.protocols import Store, Vector

MANY = 2058  # vectors: more than the engines that we know compare one by one

ONLY_MEMORY = Scope(sources=frozenset({"memory"}))

ONLY_SESSIONS = Scope(sources=frozenset({"sessions"}))

BAD_VECTORS = [
    pytest.param(np.full(DIMENSIONS, np.nan, np.float32), id="NaN"),
    pytest.param(np.full(DIMENSIONS, np.inf, np.float32), id="infinity"),
    pytest.param(np.zeros(DIMENSIONS, np.float32), id="zero"),
    pytest.param(np.ones(DIMENSIONS + 1, np.float32), id="too long"),
    pytest.param(np.ones((1, DIMENSIONS), np.float32), id="a matrix"),
]
GROUP = Scope(public_only=True)
TEAM = Scope(public_only=True, own_transcripts=frozenset({"sessions/groups/team.json5"}))


DECISION = EntryLabel("k3f9a2qx", "decision", 8)


def found(store: Store, *words: str, limit: int = 10, scope: Scope = EVERYTHING) -> list[str]:
    """Return the texts of the chunks that keywords find, best first."""
    with store.reading() as snapshot:
        matches = snapshot.keyword_matches(terms(*words), limit=limit, scope=scope)
        chunks = snapshot.chunks([match.chunk_id for match in matches])
        return [chunks[match.chunk_id].text for match in matches]


def newest(store: Store, limit: int = 10, scope: Scope = EVERYTHING) -> list[str]:
    """Return the texts of the newest chunks."""
    with store.reading() as snapshot:
        chunk_ids = snapshot.newest_chunks(limit=limit, scope=scope)
        chunks = snapshot.chunks(chunk_ids)
        return [chunks[chunk_id].text for chunk_id in chunk_ids]


def nearest(store: Store, text: str, limit: int = 10, scope: Scope = EVERYTHING) -> list[str]:
    """Return the texts of the chunks that vectors find, best first."""
    with store.reading() as snapshot:
        matches = snapshot.vector_matches(vector_for(text), limit=limit, scope=scope)
        chunks = snapshot.chunks([match.chunk_id for match in matches])
        return [chunks[match.chunk_id].text for match in matches]


def put(store: Store, path: str, *texts: str, private: bool = False, source: SourceName = "memory") -> None:
    """Store a document with its vectors."""
    chunks = chunks_of(*texts)
    store.put_document(document(path, source=source)._replace(private=private), chunks, vectors_of(chunks))


def seen(store: Store, word: str, scope: Scope, *, limit: int = 50) -> set[str]:
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


class StoreSearchContract(StoreFixtures):
    """What a store must find, and what it must keep from a group."""

    def test_rare_words_and_repeated_words_rank_higher(self, store: Store) -> None:
        store.put_document(document(), chunks_of("tea coffee", "coffee milk", "coffee sugar", "tea tea milk"), {})
        assert found(store, "tea", "coffee")[0] == "tea coffee"
        assert found(store, "tea") == ["tea tea milk", "tea coffee"]

    def test_a_word_in_the_heading_counts_less_than_in_the_text(self, store: Store) -> None:
        store.put_document(
            document(), [prepared("kettle one two", context="x"), prepared("x one two", context="kettle")], {}
        )
        assert found(store, "kettle") == ["kettle one two", "x one two"]

    @pytest.mark.parametrize(
        ("asked", "expected"),
        [
            pytest.param([Term(("guest", "wifi"))], {"guest wifi is on"}, id="a phrase needs its order"),
            pytest.param(
                [Term(("gue",), prefix=True)], {"guest wifi is on", "wifi for a guest"}, id="a prefix goes on"
            ),
            pytest.param(
                [Term(("a", "gu"), prefix=True)], {"wifi for a guest"}, id="the last word of a phrase goes on"
            ),
            pytest.param([Term(("gue",))], set(), id="a word is whole"),
            pytest.param([], set(), id="no term"),
            pytest.param([Term(())], set(), id="a term without tokens"),
            pytest.param([Term(("", " "), prefix=True)], set(), id="a term of blanks"),
            pytest.param([Term(("wifi\0guest",))], set(), id="a NUL does not cut the query short"),
            pytest.param([Term(("\ud800",)), Term(("on",))], {"guest wifi is on"}, id="half a surrogate pair"),
            pytest.param([Term(('"',)), Term(("on",))], {"guest wifi is on"}, id="a lone quote"),
            pytest.param(
                [Term(("OR",)), Term(("NOT",)), Term(("on",))], {"guest wifi is on"}, id="operators are words"
            ),
        ],
    )
    def test_terms(self, store: Store, asked: list[Term], expected: set[str]) -> None:
        store.put_document(document(), chunks_of("guest wifi is on", "wifi for a guest"), {})
        with store.reading() as snapshot:
            matches = snapshot.keyword_matches(asked, limit=9, scope=EVERYTHING)
            assert {snapshot.chunks([match.chunk_id])[match.chunk_id].text for match in matches} == expected

    def test_given_chunks_come_with_the_best_and_with_the_same_scores(self, store: Store) -> None:
        store.put_document(document(), chunks_of("tea", "tea and milk", "milk", "water"), {})
        asked = terms("tea", "milk")
        with store.reading() as snapshot:
            everything = snapshot.keyword_matches(asked, limit=9, scope=EVERYTHING)
            assert all(match.score > 0 for match in everything)
            best, *_, last = everything
            assert snapshot.keyword_matches(asked, limit=1, scope=EVERYTHING) == [best]
            assert snapshot.keyword_matches(asked, limit=1, scope=EVERYTHING, also=[last.chunk_id, 10**9]) == [
                best,
                last,
            ]
            assert snapshot.keyword_matches(asked, limit=1, scope=EVERYTHING, also=[best.chunk_id]) == [best]

    def test_leading_terms_find_and_all_terms_score(self, store: Store) -> None:
        store.put_document(document(), chunks_of("tea", "tea and milk", "milk", "water and milk"), {})
        asked = terms("tea", "milk")
        with store.reading() as snapshot:
            everything = snapshot.keyword_matches(asked, limit=9, scope=EVERYTHING)
            texts = {match.chunk_id: snapshot.chunks([match.chunk_id])[match.chunk_id].text for match in everything}
            with_tea = [match for match in everything if "tea" in texts[match.chunk_id]]
            only_milk = [match for match in everything if "tea" not in texts[match.chunk_id]]
            assert len(with_tea) == len(only_milk) == 2
            led = snapshot.keyword_matches(asked, limit=9, scope=EVERYTHING, led_by=terms("tea"))
            assert led == with_tea
            also = [only_milk[0].chunk_id]
            with_one_more = snapshot.keyword_matches(asked, limit=9, scope=EVERYTHING, led_by=terms("tea"), also=also)
            assert sorted(with_one_more) == sorted([*with_tea, only_milk[0]])
            assert snapshot.keyword_matches(asked, limit=9, scope=EVERYTHING, led_by=[]) == []
            narrow = Scope(since=date(2026, 1, 1))
            assert snapshot.keyword_matches(asked, limit=9, scope=narrow, led_by=terms("tea"), also=also) == []

    def test_keyword_scores_are_those_of_a_search(self, store: Store) -> None:
        store.put_document(document(), chunks_of("tea", "tea and milk", "milk", "water"), {})
        asked = terms("tea", "milk")
        with store.reading() as snapshot:
            everything = dict(snapshot.keyword_matches(asked, limit=9, scope=EVERYTHING))
            assert len(everything) == 3
            assert snapshot.keyword_scores(asked, [*everything, 10**9]) == everything
            best = next(iter(everything))
            assert snapshot.keyword_scores(asked, [best]) == {best: everything[best]}
            assert snapshot.keyword_scores(asked, []) == {}
            assert snapshot.keyword_scores([], everything) == {}

    def test_frequencies_are_counted_up_to_a_limit(self, store: Store) -> None:
        store.put_document(document(), chunks_of(*(f"common {number}" for number in range(20))), {})
        with store.reading() as snapshot:
            asked = [*terms("common", "7", "absent"), Term(("common", "3")), Term(())]
            assert snapshot.document_frequencies(asked, at_most=5) == [5, 1, 0, 1, 0]
            assert snapshot.document_frequencies(asked, at_most=100) == [20, 1, 0, 1, 0]

    def test_ties_are_in_order_of_ids_and_short_lists_begin_long_ones(self, store: Store) -> None:
        store.set_embedder(IDENTITY, "bits")
        for number in range(40):
            chunks = chunks_of("the very same words")
            store.put_document(document(f"memory/{number}.md"), chunks, vectors_of(chunks))
        with store.reading() as snapshot:
            searches: tuple[Callable[[int], Sequence[Match]], ...] = (
                lambda limit: snapshot.keyword_matches(terms("same"), limit=limit, scope=EVERYTHING),
                lambda limit: snapshot.vector_matches(vector_for("query"), limit=limit, scope=EVERYTHING),
            )
            for search in searches:
                long = list(search(40))
                assert [match.chunk_id for match in long] == sorted(match.chunk_id for match in long)
                assert len({match.score for match in long}) == 1
                for limit in (1, 7, 39):
                    assert list(search(limit)) == long[:limit]
                assert list(search(0)) == []

    @pytest.mark.parametrize(
        ("scope", "expected"),
        [
            pytest.param(EVERYTHING, {"evergreen", "january", "march", "talk"}, id="everything"),
            pytest.param(ONLY_MEMORY, {"evergreen", "january", "march"}, id="one source"),
            pytest.param(ONLY_SESSIONS, {"talk"}, id="the other source"),
            pytest.param(Scope(sources=frozenset()), set(), id="no source"),
            pytest.param(
                Scope(sources=frozenset({"memory", "sessions"})), {"evergreen", "january", "march", "talk"}, id="all"
            ),
            pytest.param(Scope(since=date(2026, 1, 31)), {"january", "march", "talk"}, id="since, inclusive"),
            pytest.param(Scope(until=date(2026, 1, 31)), {"january"}, id="until, inclusive"),
            pytest.param(Scope(since=date(2026, 2, 1), until=date(2026, 3, 31)), {"march", "talk"}, id="between"),
            pytest.param(
                Scope(sources=frozenset({"memory"}), since=date(2026, 2, 1)), {"march"}, id="a source and a date"
            ),
            pytest.param(
                Scope(since=date(2026, 2, 1), undated=True),
                {"evergreen", "march", "talk"},
                id="since, and what has no date",
            ),
            pytest.param(
                Scope(until=date(2026, 1, 31), undated=True), {"evergreen", "january"}, id="until, and what has no date"
            ),
            pytest.param(
                Scope(since=date(2026, 2, 1), until=date(2026, 2, 28), undated=True), {"evergreen"}, id="no date at all"
            ),
            pytest.param(
                Scope(sources=frozenset({"sessions"}), until=date(2026, 1, 31), undated=True),
                set(),
                id="of another source",
            ),
            pytest.param(
                Scope(since=date(2026, 1, 31), until=date(2026, 3, 2), undated=True),
                {"evergreen", "january", "march", "talk"},
                id="days that leave nothing out",
            ),
            pytest.param(
                Scope(undated=True), {"evergreen", "january", "march", "talk"}, id="without days it says nothing"
            ),
        ],
    )
    def test_scope(self, store: Store, scope: Scope, expected: set[str]) -> None:
        store.set_embedder(IDENTITY, "bits")
        documents: list[tuple[str, SourceName, str | None]] = [
            ("evergreen", "memory", None),
            ("january", "memory", "2026-01-31"),
            ("march", "memory", "2026-03-01"),
            ("talk", "sessions", "2026-03-02"),
        ]
        for text, source, dated in documents:
            chunks = [with_terms(Chunk(1, 1, text), f"word {text}")]
            store.put_document(document(f"{text}.md", source=source, dated=dated), chunks, vectors_of(chunks))
        assert set(found(store, "word", scope=scope)) == expected
        assert set(nearest(store, "word", scope=scope)) == expected
        newest_first = ["talk", "march", "january", "evergreen"]
        assert newest(store, scope=scope) == [text for text in newest_first if text in expected]

    def test_a_category_is_a_scope(self, store: Store) -> None:
        store.set_embedder(IDENTITY, "bits")
        fact = DECISION._replace(category="fact")
        rows = [prepared("tea plain"), prepared("tea decided", label=DECISION), prepared("tea as it is", label=fact)]
        store.put_document(document(), rows, {})
        store.put_document(document("memory/old.md", dated="2020-01-01"), [prepared("tea of old", label=DECISION)], {})
        embed_pending(store)
        decisions = Scope(category="decision")
        for ask in (found, nearest):
            assert set(ask(store, "tea", scope=decisions)) == {"tea decided", "tea of old"}
            assert ask(store, "tea", scope=replace(decisions, until=date(2021, 1, 1))) == ["tea of old"]
            assert ask(store, "tea", scope=Scope(category="entity")) == []
            assert len(ask(store, "tea")) == 4
        assert newest(store, scope=decisions) == ["tea of old", "tea decided"]
        assert newest(store, scope=replace(decisions, sources=frozenset({"sessions"}))) == []

    def test_the_chunks_of_entries_are_listed(self, store: Store) -> None:
        store.set_embedder(IDENTITY, "bits")
        other = DECISION._replace(id="other")
        rows = [prepared("plain"), prepared("below", line=7, label=other), prepared("above", line=3, label=DECISION)]
        store.put_document(document("memory/b.md"), rows, {})
        store.put_document(document("memory/a.md")._replace(private=True), [prepared("first", label=DECISION)], {})

        def listed(ids: list[str] | None = None, scope: Scope = EVERYTHING) -> list[tuple[str, str, str]]:
            with store.reading_within(scope) as snapshot:
                found = snapshot.entries(ids)
                texts = snapshot.chunks([each.chunk_id for each in found])
            return [(each.path, each.entry, texts[each.chunk_id].text) for each in found]

        own = DECISION.id
        b = [("memory/b.md", own, "above"), ("memory/b.md", "other", "below")]
        assert listed() == [("memory/a.md", own, "first"), *b]
        assert listed(["other", "gone"]) == b[1:]
        assert listed([]) == []
        assert listed(scope=Scope(public_only=True)) == b

    def test_the_newest_chunks_come_first_and_those_without_a_date_last(self, store: Store) -> None:
        for path, dated in (("old.md", "2026-01-01"), ("none.md", None), ("new.md", "2026-05-01")):
            lines = [prepared(f"{path} below", line=9), prepared(f"{path} above", line=2)]
            store.put_document(document(path, dated=dated), lines, {})
        expected = [f"{path} {place}" for path in ("new.md", "old.md", "none.md") for place in ("above", "below")]
        for limit in (0, 1, 3, 6, 99):
            assert newest(store, limit=limit) == expected[:limit]
        january = Scope(since=date(2026, 1, 1), until=date(2026, 1, 31))
        assert newest(store, scope=january) == expected[2:4]
        assert newest(store, limit=3, scope=replace(january, undated=True)) == expected[2:5]
        store.put_document(document("none.md", dated="2026-06-01"), chunks_of("dated by now"), {})
        assert newest(store, limit=1) == ["dated by now"]

    def test_the_newest_chunks_for_a_group_are_neither_private_nor_of_other_conversations(self, store: Store) -> None:
        hidden = document("hidden.md", dated="2026-05-03")._replace(private=True)
        store.put_document(hidden, chunks_of("hidden"), {})
        store.put_document(document("open.md", dated="2026-05-01"), chunks_of("open"), {})
        for name in ("theirs", "other"):
            store.put_document(document(name, source="sessions", dated="2026-05-02"), chunks_of(name), {})
        assert newest(store, scope=Scope(public_only=True)) == ["open"]
        theirs = Scope(public_only=True, own_transcripts=frozenset({"theirs"}))
        assert newest(store, scope=theirs) == ["theirs", "open"]

    def test_cosines_are_exact_and_the_same_everywhere(self, store: Store) -> None:
        store.set_embedder(IDENTITY, "bits")
        texts = [f"text {number}" for number in range(30)]
        chunks = chunks_of(*texts)
        store.put_document(document(), chunks, vectors_of(chunks))
        query = vector_for("query")
        ids = ids_by_text(store)
        with store.reading() as snapshot:
            matches = snapshot.vector_matches(query, limit=30, scope=EVERYTHING)
            assert snapshot.vector_scores(query, ids.values()) == {match.chunk_id: match.score for match in matches}
            assert snapshot.vector_scores(query, [999_999]) == {}
        expected = {ids[text]: float(vector_for(text) @ query) for text in texts}
        assert [match.chunk_id for match in matches] == sorted(expected, key=expected.__getitem__, reverse=True)
        assert {match.chunk_id: match.score for match in matches} == pytest.approx(expected, abs=1e-3)

    @pytest.mark.parametrize("bad", BAD_VECTORS)
    def test_a_bad_query_vector_is_refused(self, store: Store, bad: Vector) -> None:
        store.set_embedder(IDENTITY, "bits")
        store.put_document(document(), chunks_of("one"), {})
        embed_pending(store)
        with store.reading() as snapshot, pytest.raises(BadVectorError):
            snapshot.vector_matches(bad, limit=3, scope=EVERYTHING)

    @pytest.fixture(params=[0, MANY], ids=["few vectors", "many vectors"])
    def filled(self, request: pytest.FixtureRequest, store: Store) -> Store:
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
                Scope(public_only=True, sources=frozenset({"sessions"})),
                set(),
                id="conversations, by a group without one",
            ),
        ],
    )
    def test_a_group_sees_only_what_is_for_all(self, filled: Store, scope: Scope, paths: set[str]) -> None:
        assert seen(filled, "harbour", scope) == paths

    def test_a_document_can_become_private_and_open_again(self, store: Store) -> None:
        store.set_embedder(IDENTITY, "int8")
        put(store, "memory/a.md", "harbour one")
        assert seen(store, "harbour", GROUP) == {"memory/a.md"}
        put(store, "memory/a.md", "harbour one", private=True)
        assert seen(store, "harbour", GROUP) == set()
        with store.reading() as snapshot:
            assert snapshot.documents()["memory", "memory/a.md"].private
        store.touch_documents([document("memory/a.md")])
        assert seen(store, "harbour", GROUP) == {"memory/a.md"}
