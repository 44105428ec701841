"""What every `Store` must do, whatever the engine."""

from __future__ import annotations

import threading
from dataclasses import replace
from datetime import date

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from notewell.errors import BadVectorError, IndexMismatchError, NotewellError
from notewell.types import (
    EVERYTHING,
    Chunk,
    ChunkPlace,
    Counts,
    EmbedderIdentity,
    PreparedChunk,
    Scope,
    SourceCounts,
    Term,
)
from tests.store.builders import (
    DIMENSIONS,
    IDENTITY,
    chunks_of,
    document,
    embed_pending,
    ids_by_text,
    prepared,
    terms,
    vector_for,
    vectors_of,
)

ONLY_MEMORY = Scope(sources=frozenset({"memory"}))
BOTH_SOURCES = Scope(sources=frozenset({"memory", "sessions"}))
ONLY_SESSIONS = Scope(sources=frozenset({"sessions"}))


def found(store, *words, limit=10, scope=EVERYTHING) -> list[str]:
    """Return the texts of the chunks that keywords find, best first."""
    with store.reading() as snapshot:
        matches = snapshot.keyword_matches(terms(*words), limit=limit, scope=scope)
        chunks = snapshot.chunks([match.chunk_id for match in matches])
        return [chunks[match.chunk_id].text for match in matches]


def newest(store, limit=10, scope=EVERYTHING) -> list[str]:
    with store.reading() as snapshot:
        chunk_ids = snapshot.newest_chunks(limit=limit, scope=scope)
        chunks = snapshot.chunks(chunk_ids)
        return [chunks[chunk_id].text for chunk_id in chunk_ids]


def nearest(store, text, limit=10, scope=EVERYTHING) -> list[str]:
    with store.reading() as snapshot:
        matches = snapshot.vector_matches(vector_for(text), limit=limit, scope=scope)
        chunks = snapshot.chunks([match.chunk_id for match in matches])
        return [chunks[match.chunk_id].text for match in matches]


# --- documents ---------------------------------------------------------------------------------


def test_a_new_store_is_empty(store):
    with store.reading() as snapshot:
        assert snapshot.counts() == Counts(files=0, chunks=0, pending=0, embedded=0)
        assert snapshot.documents() == {}
        assert list(snapshot.source_counts()) == []
        assert snapshot.keyword_matches(terms("anything"), limit=5, scope=EVERYTHING) == []
        assert list(snapshot.vector_matches(vector_for("x"), limit=5, scope=EVERYTHING)) == []
        assert list(snapshot.newest_chunks(limit=5, scope=EVERYTHING)) == []
        assert snapshot.places([1]) == {}
        assert snapshot.embedder() is None
    assert store.verify() == []
    assert not store.read_only
    assert store.size_bytes() > 0


def test_documents_come_back_as_they_were_put(store):
    dated = document("memory/2026-11-15.md", dated="2026-11-15", size=7)
    talk = document("talk.jsonl", source="sessions")
    store.put_document(dated, chunks_of("one"), {})
    store.put_document(talk, [], {})
    with store.reading() as snapshot:
        assert snapshot.documents() == {("memory", "memory/2026-11-15.md"): dated, ("sessions", "talk.jsonl"): talk}
        assert snapshot.documents("sessions") == {("sessions", "talk.jsonl"): talk}
        assert snapshot.counts() == Counts(files=2, chunks=1, pending=1, embedded=0)
        assert list(snapshot.source_counts()) == [SourceCounts("memory", 1, 1), SourceCounts("sessions", 1, 0)]


def test_chunks_come_back_as_they_were_put(store):
    store.put_document(document(dated="2026-01-02"), [prepared("Tea\nis ready", context="Kitchen", line=4)], {})
    (chunk_id,) = ids_by_text(store).values()
    with store.reading() as snapshot:
        chunk = snapshot.chunks([chunk_id, chunk_id + 1])[chunk_id]
    assert (chunk.id, chunk.source, chunk.path) == (chunk_id, "memory", "memory/a.md")
    assert (chunk.first_line, chunk.last_line) == (4, 5)
    assert (chunk.text, chunk.context, chunk.dated) == ("Tea\nis ready", "Kitchen", date(2026, 1, 2))
    assert (chunk.turn, chunk.parts) == (0, 1)


def test_a_chunk_knows_its_message_and_the_parts_of_it(store):
    talk = [prepared("one", turn=1), prepared("two, first", turn=2, parts=2), prepared("two, last", turn=2, parts=2)]
    store.put_document(document("talk.jsonl", source="sessions"), talk, {})
    store.put_document(document(), [prepared("note", parts=1)], {})
    ids = ids_by_text(store)
    with store.reading() as snapshot:
        places = snapshot.places([*ids.values(), 10**9])
        chunks = snapshot.chunks(ids.values())
        assert snapshot.places([]) == {}
        assert snapshot.places([ids["two, last"]]) == {ids["two, last"]: places[ids["two, last"]]}
    found = {text: places[chunk_id] for text, chunk_id in ids.items()}
    spoken, noted = found["one"].document, found["note"].document
    assert spoken != noted
    assert found == {
        "one": ChunkPlace(spoken, turn=1, parts=1),
        "two, first": ChunkPlace(spoken, turn=2, parts=2),
        "two, last": ChunkPlace(spoken, turn=2, parts=2),
        "note": ChunkPlace(noted, turn=0, parts=1),
    }
    assert {chunk.text: (chunk.turn, chunk.parts) for chunk in chunks.values()} == {
        text: (place.turn, place.parts) for text, place in found.items()
    }
    assert places.keys() == set(ids.values())


def test_touching_changes_the_stamp_and_nothing_else(store):
    store.put_document(document(size=1), chunks_of("one"), {})
    before = ids_by_text(store)
    touched = document(size=99, dated="2026-03-04", text="new bytes, same text")
    store.touch_documents([touched, document("memory/not-there.md")])
    with store.reading() as snapshot:
        assert snapshot.documents() == {("memory", "memory/a.md"): touched}
    assert ids_by_text(store) == before
    assert store.verify() == []


def test_meta_values_are_kept_and_replaced(open_store):
    store = open_store()
    store.write_meta({"profile": "1", "other": "ü"})
    store.write_meta({"profile": "2"})
    store.close()
    with open_store().reading() as snapshot:
        assert (snapshot.meta("profile"), snapshot.meta("other"), snapshot.meta("none")) == ("2", "ü", None)


# --- edits -------------------------------------------------------------------------------------


def test_an_edit_keeps_the_ids_and_vectors_of_chunks_that_only_moved(store):
    store.set_embedder(IDENTITY, "bits")
    store.put_document(document(), chunks_of("first", "second", "third"), {})
    embed_pending(store)
    before = ids_by_text(store)
    edited = [prepared("new on top", line=1), prepared("first", line=31), prepared("third", line=41)]
    store.put_document(document(), edited, {})
    after = ids_by_text(store)
    assert (after["first"], after["third"]) == (before["first"], before["third"])
    assert set(after) == {"new on top", "first", "third"}
    assert after["new on top"] not in before.values()
    assert [chunk.id for chunk in store.pending(10)] == [after["new on top"]]
    with store.reading() as snapshot:
        assert snapshot.chunks([after["first"]])[after["first"]].first_line == 31
        assert set(snapshot.vector_scores(vector_for("first"), after.values())) == {after["first"], after["third"]}
    assert store.verify() == []


def test_an_edit_tells_the_chunks_that_stay_their_new_message_and_parts(store):
    store.set_embedder(IDENTITY, "bits")
    store.put_document(document(), [prepared("kept", turn=2, parts=3)], {})
    embed_pending(store)
    before = ids_by_text(store)
    store.put_document(document(), [prepared("kept", turn=1, parts=2)], {})
    assert ids_by_text(store) == before
    assert store.pending(10) == []
    with store.reading() as snapshot:
        place = snapshot.places([before["kept"]])[before["kept"]]
    assert (place.turn, place.parts) == (1, 2)
    assert store.verify() == []


def test_equal_chunks_are_counted_one_by_one(store):
    store.put_document(document(), chunks_of("same", "same", "other"), {})
    with store.reading() as snapshot:
        before = [match.chunk_id for match in snapshot.keyword_matches(terms("same"), limit=9, scope=EVERYTHING)]
    store.put_document(document(), chunks_of("same", "other"), {})
    with store.reading() as snapshot:
        after = [match.chunk_id for match in snapshot.keyword_matches(terms("same"), limit=9, scope=EVERYTHING)]
        assert snapshot.counts().chunks == 2
    assert len(before) == 2
    assert after == before[:1]


def test_a_heading_that_becomes_text_is_shown_as_text(store):
    # Both chunks are embedded as the same words; only where the heading ends differs.
    store.put_document(document(), [prepared("is green", context="Tea")], {})
    store.put_document(document(), [prepared("Tea\nis green")], {})
    assert found(store, "tea") == ["Tea\nis green"]
    with store.reading() as snapshot:
        (match,) = snapshot.keyword_matches(terms("tea"), limit=9, scope=EVERYTHING)
        assert snapshot.chunks([match.chunk_id])[match.chunk_id].context == ""
    assert store.verify() == []


def test_ids_are_never_used_twice(store):
    store.put_document(document(), chunks_of("one"), {})
    first = ids_by_text(store)["one"]
    store.remove_documents("memory", ["memory/a.md"])
    store.put_document(document(), chunks_of("one"), {})
    assert ids_by_text(store)["one"] > first


def test_a_renamed_document_takes_its_vectors_along(store):
    store.set_embedder(IDENTITY, "bits")
    chunks = chunks_of("one", "two")
    store.put_document(document("memory/old.md"), chunks, vectors_of(chunks))
    with store.reading() as snapshot:
        known = snapshot.known_vectors([item.chunk.embedded_hash for item in chunks] + ["ab" * 32])
    assert len(known) == 2
    store.remove_documents("memory", ["memory/old.md"])
    store.put_document(document("memory/new.md"), chunks, known)
    assert store.pending(10) == []
    with store.reading() as snapshot:
        again = snapshot.known_vectors(list(known))
    assert all(np.array_equal(known[digest], again[digest]) for digest in known)


# --- removal -----------------------------------------------------------------------------------


def test_a_removed_document_leaves_no_trace(store):
    store.set_embedder(IDENTITY, "bits")
    stays, goes = chunks_of("kept words"), chunks_of("secret words", "more secret")
    store.put_document(document("memory/stays.md"), stays, vectors_of(stays))
    store.put_document(document("memory/goes.md"), goes, vectors_of(goes))
    store.remove_documents("memory", ["memory/goes.md", "memory/never-there.md"])
    assert found(store, "secret", "words") == ["kept words"]
    assert nearest(store, "secret words") == ["kept words"]
    with store.reading() as snapshot:
        assert snapshot.known_vectors([item.chunk.embedded_hash for item in goes]) == {}
        assert snapshot.document_frequencies(terms("secret", "words"), at_most=9) == [0, 1]
        assert snapshot.counts() == Counts(files=1, chunks=1, pending=0, embedded=1)
    assert store.verify() == []


def test_terms_beginning_lists_indexed_terms_in_order(store):
    store.put_document(document("memory/a.md"), [prepared("cargo cart carts dog 数据", context="carton")], {})
    store.put_document(document("memory/b.md"), chunks_of("cart car cab"), {})
    with store.reading() as snapshot:
        assert list(snapshot.terms_beginning("car", lengths=range(1, 20), limit=10)) == [
            "car", "cargo", "cart", "carton", "carts",
        ]  # fmt: skip
        assert list(snapshot.terms_beginning("car", lengths=range(4, 6), limit=10)) == ["cargo", "cart", "carts"]
        assert list(snapshot.terms_beginning("car", lengths=range(1, 20), limit=2)) == ["car", "cargo"]
        assert list(snapshot.terms_beginning("数", lengths=range(1, 20), limit=10)) == ["数据"]
        assert list(snapshot.terms_beginning("ca\0", lengths=range(1, 20), limit=10)) == []
        assert list(snapshot.terms_beginning("\ud800", lengths=range(1, 20), limit=10)) == []
        assert list(snapshot.terms_beginning("", lengths=range(1, 20), limit=10)) == []
        assert list(snapshot.terms_beginning("car", lengths=range(4, 4), limit=10)) == []
    store.put_document(document("memory/a.md"), chunks_of("cargo"), {})
    with store.reading() as snapshot:
        assert {"car", "cargo", "cart"} <= set(snapshot.terms_beginning("car", lengths=range(1, 20), limit=10))


def test_removal_respects_the_source(store):
    store.put_document(document("a.md", source="memory"), chunks_of("note"), {})
    store.put_document(document("a.md", source="sessions"), chunks_of("talk"), {})
    store.remove_documents("sessions", ["a.md"])
    assert found(store, "note", "talk") == ["note"]


def test_vectors_for_chunks_that_are_gone_are_left_out(store):
    store.set_embedder(IDENTITY, "bits")
    store.put_document(document("memory/stays.md"), chunks_of("stays"), {})
    store.put_document(document("memory/goes.md"), chunks_of("goes"), {})
    waiting = store.pending(10)
    store.remove_documents("memory", ["memory/goes.md"])
    store.put_vectors({chunk.id: vector_for(chunk.embedded_text) for chunk in waiting})
    assert nearest(store, "goes") == ["stays"]
    assert store.verify() == []


# --- keyword search ----------------------------------------------------------------------------


def test_rare_words_and_repeated_words_rank_higher(store):
    store.put_document(document(), chunks_of("tea coffee", "coffee milk", "coffee sugar", "tea tea milk"), {})
    assert found(store, "tea", "coffee")[0] == "tea coffee"
    assert found(store, "tea") == ["tea tea milk", "tea coffee"]


def test_a_word_in_the_heading_counts_less_than_in_the_text(store):
    store.put_document(
        document(), [prepared("kettle one two", context="x"), prepared("x one two", context="kettle")], {}
    )
    assert found(store, "kettle") == ["kettle one two", "x one two"]


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        pytest.param([Term(("guest", "wifi"))], {"guest wifi is on"}, id="a phrase needs its order"),
        pytest.param([Term(("gue",), prefix=True)], {"guest wifi is on", "wifi for a guest"}, id="a prefix goes on"),
        pytest.param([Term(("a", "gu"), prefix=True)], {"wifi for a guest"}, id="the last word of a phrase goes on"),
        pytest.param([Term(("gue",))], set(), id="a word is whole"),
        pytest.param([], set(), id="no term"),
        pytest.param([Term(())], set(), id="a term without tokens"),
        pytest.param([Term(("", " "), prefix=True)], set(), id="a term of blanks"),
        pytest.param([Term(("wifi\0guest",))], set(), id="a NUL does not cut the query short"),
        pytest.param([Term(("\ud800",)), Term(("on",))], {"guest wifi is on"}, id="half a surrogate pair"),
        pytest.param([Term(('"',)), Term(("on",))], {"guest wifi is on"}, id="a lone quote"),
        pytest.param([Term(("OR",)), Term(("NOT",)), Term(("on",))], {"guest wifi is on"}, id="operators are words"),
    ],
)
def test_terms(store, asked, expected):
    store.put_document(document(), chunks_of("guest wifi is on", "wifi for a guest"), {})
    with store.reading() as snapshot:
        matches = snapshot.keyword_matches(asked, limit=9, scope=EVERYTHING)
        assert {snapshot.chunks([match.chunk_id])[match.chunk_id].text for match in matches} == expected


TOKENS = st.text(
    st.characters(exclude_categories=["Cs", "Cc", "Zs", "Zl", "Zp"], exclude_characters="ABCDEFGHIJKLMNOPQRSTUVWXYZ"),
    min_size=1,
    max_size=12,
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(tokens=st.lists(TOKENS, min_size=1, max_size=12, unique=True))
def test_a_token_is_found_by_exactly_that_token(store, tokens):
    chunks = [PreparedChunk(Chunk(1, 1, repr(token)), token, "") for token in tokens]
    store.put_document(document(), chunks, {})
    for token in tokens:
        assert found(store, token) == [repr(token)]


def test_given_chunks_come_with_the_best_and_with_the_same_scores(store):
    store.put_document(document(), chunks_of("tea", "tea and milk", "milk", "water"), {})
    asked = terms("tea", "milk")
    with store.reading() as snapshot:
        everything = snapshot.keyword_matches(asked, limit=9, scope=EVERYTHING)
        assert all(match.score > 0 for match in everything)
        best, *_, last = everything
        assert snapshot.keyword_matches(asked, limit=1, scope=EVERYTHING) == [best]
        assert snapshot.keyword_matches(asked, limit=1, scope=EVERYTHING, also=[last.chunk_id, 10**9]) == [best, last]
        assert snapshot.keyword_matches(asked, limit=1, scope=EVERYTHING, also=[best.chunk_id]) == [best]


def test_what_is_written_together_is_seen_together(store):
    with store.together():
        store.put_document(document("memory/a.md"), chunks_of("tea"), {})
        store.put_document(document("memory/b.md"), chunks_of("milk"), {})
        with store.reading() as snapshot:
            assert snapshot.counts().files == 0
    with store.reading() as snapshot:
        assert snapshot.counts().files == 2
    assert store.verify() == []


def test_what_fails_together_leaves_nothing(store):
    store.put_document(document("memory/before.md"), chunks_of("water"), {})

    def write_and_fail():
        with store.together():
            store.put_document(document("memory/a.md"), chunks_of("tea"), {})
            store.remove_documents("memory", ["memory/before.md"])
            raise RuntimeError("half-way")

    with pytest.raises(RuntimeError, match="half-way"):
        write_and_fail()
    with store.reading() as snapshot:
        assert [path for _, path in snapshot.documents()] == ["memory/before.md"]
    assert found(store, "water") == ["water"]
    assert found(store, "tea") == []
    assert store.verify() == []


def test_leading_terms_find_and_all_terms_score(store):
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


def test_keyword_scores_are_those_of_a_search(store):
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


def test_frequencies_are_counted_up_to_a_limit(store):
    store.put_document(document(), chunks_of(*(f"common {number}" for number in range(20))), {})
    with store.reading() as snapshot:
        asked = [*terms("common", "7", "absent"), Term(("common", "3")), Term(())]
        assert snapshot.document_frequencies(asked, at_most=5) == [5, 1, 0, 1, 0]
        assert snapshot.document_frequencies(asked, at_most=100) == [20, 1, 0, 1, 0]


# --- order, limits, scope ----------------------------------------------------------------------


def test_ties_are_in_order_of_ids_and_short_lists_begin_long_ones(store):
    store.set_embedder(IDENTITY, "bits")
    for number in range(40):
        chunks = chunks_of("the very same words")
        store.put_document(document(f"memory/{number}.md"), chunks, vectors_of(chunks))
    with store.reading() as snapshot:
        for search in (
            lambda limit: snapshot.keyword_matches(terms("same"), limit=limit, scope=EVERYTHING),
            lambda limit: snapshot.vector_matches(vector_for("query"), limit=limit, scope=EVERYTHING),
        ):
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
        pytest.param(Scope(sources=frozenset({"memory"}), since=date(2026, 2, 1)), {"march"}, id="a source and a date"),
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
            Scope(sources=frozenset({"sessions"}), until=date(2026, 1, 31), undated=True), set(), id="of another source"
        ),
        pytest.param(
            Scope(since=date(2026, 1, 31), until=date(2026, 3, 2), undated=True),
            {"evergreen", "january", "march", "talk"},
            id="days that leave nothing out",
        ),
        pytest.param(Scope(undated=True), {"evergreen", "january", "march", "talk"}, id="without days it says nothing"),
    ],
)
def test_scope(store, scope, expected):
    store.set_embedder(IDENTITY, "bits")
    for text, source, dated in (
        ("evergreen", "memory", None),
        ("january", "memory", "2026-01-31"),
        ("march", "memory", "2026-03-01"),
        ("talk", "sessions", "2026-03-02"),
    ):
        chunks = [PreparedChunk(Chunk(1, 1, text), f"word {text}", "")]
        store.put_document(document(f"{text}.md", source=source, dated=dated), chunks, vectors_of(chunks))
    assert set(found(store, "word", scope=scope)) == expected
    assert set(nearest(store, "word", scope=scope)) == expected
    newest_first = ["talk", "march", "january", "evergreen"]
    assert newest(store, scope=scope) == [text for text in newest_first if text in expected]


def test_the_newest_chunks_come_first_and_those_without_a_date_last(store):
    for path, dated in (("old.md", "2026-01-01"), ("none.md", None), ("new.md", "2026-05-01")):
        lines = [prepared(f"{path} below", line=9), prepared(f"{path} above", line=2)]
        store.put_document(document(path, dated=dated), lines, {})
    expected = [f"{path} {place}" for path in ("new.md", "old.md", "none.md") for place in ("above", "below")]
    for limit in (0, 1, 3, 6, 99):
        assert newest(store, limit=limit) == expected[:limit]
    dated = Scope(since=date(2026, 1, 1), until=date(2026, 1, 31))
    assert newest(store, scope=dated) == expected[2:4]
    assert newest(store, limit=3, scope=replace(dated, undated=True)) == expected[2:5]
    store.put_document(document("none.md", dated="2026-06-01"), chunks_of("dated by now"), {})
    assert newest(store, limit=1) == ["dated by now"]


def test_the_newest_chunks_for_a_group_are_neither_private_nor_of_other_conversations(store):
    hidden = document("hidden.md", dated="2026-05-03")._replace(private=True)
    store.put_document(hidden, chunks_of("hidden"), {})
    store.put_document(document("open.md", dated="2026-05-01"), chunks_of("open"), {})
    for name in ("theirs", "other"):
        store.put_document(document(name, source="sessions", dated="2026-05-02"), chunks_of(name), {})
    assert newest(store, scope=Scope(public_only=True)) == ["open"]
    theirs = Scope(public_only=True, own_transcripts=frozenset({"theirs"}))
    assert newest(store, scope=theirs) == ["theirs", "open"]


# --- vectors -----------------------------------------------------------------------------------


def test_cosines_are_exact_and_the_same_everywhere(store):
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


BAD_VECTORS = [
    pytest.param(np.full(DIMENSIONS, np.nan, np.float32), id="NaN"),
    pytest.param(np.full(DIMENSIONS, np.inf, np.float32), id="infinity"),
    pytest.param(np.zeros(DIMENSIONS, np.float32), id="zero"),
    pytest.param(np.ones(DIMENSIONS + 1, np.float32), id="too long"),
    pytest.param(np.ones((1, DIMENSIONS), np.float32), id="a matrix"),
]


@pytest.mark.parametrize("bad", BAD_VECTORS)
def test_a_bad_vector_is_refused_and_nothing_is_written(store, bad):
    store.set_embedder(IDENTITY, "bits")
    store.put_document(document(), chunks_of("one", "two"), {})
    first, second = store.pending(10)
    with pytest.raises(BadVectorError):
        store.put_vectors({first.id: vector_for("one"), second.id: bad})
    assert len(store.pending(10)) == 2
    chunks = chunks_of("three")
    with pytest.raises(BadVectorError):
        store.put_document(document("memory/b.md"), chunks, {chunks[0].chunk.embedded_hash: bad})
    with store.reading() as snapshot:
        assert snapshot.counts() == Counts(files=1, chunks=2, pending=2, embedded=0)
    assert store.verify() == []


@pytest.mark.parametrize("bad", BAD_VECTORS)
def test_a_bad_query_vector_is_refused(store, bad):
    store.set_embedder(IDENTITY, "bits")
    store.put_document(document(), chunks_of("one"), {})
    embed_pending(store)
    with store.reading() as snapshot, pytest.raises(BadVectorError):
        snapshot.vector_matches(bad, limit=3, scope=EVERYTHING)


def test_vectors_need_an_embedder_first(store):
    store.put_document(document(), chunks_of("one"), {})
    with pytest.raises(NotewellError, match="embedder"):
        store.put_vectors({store.pending(1)[0].id: vector_for("one")})


def test_vectors_of_two_embedders_are_never_mixed(store):
    other = EmbedderIdentity("test", "other", "z" * 64, 8)
    store.set_embedder(other, "int8")
    store.set_embedder(IDENTITY, "bits")  # nothing stored yet: simply replaced
    store.put_document(document(), chunks_of("one"), {})
    embed_pending(store)
    store.set_embedder(IDENTITY, "bits")
    with pytest.raises(IndexMismatchError):
        store.set_embedder(other, "int8")
    with store.reading() as snapshot:
        assert snapshot.embedder() == IDENTITY
    store.remove_documents("memory", ["memory/a.md"])
    store.set_embedder(other, "int8")
    store.put_document(document(), chunks_of("one"), {})
    store.put_vectors({store.pending(1)[0].id: np.eye(8, dtype=np.float32)[0]})
    with store.reading() as snapshot:
        (match,) = snapshot.vector_matches(np.eye(8, dtype=np.float32)[0], limit=3, scope=EVERYTHING)
    assert match.score == 1.0


def test_pending_chunks_say_what_to_embed_oldest_first(store):
    store.put_document(document(), [prepared("text", context="Heading > Sub"), prepared("plain")], {})
    first, second = store.pending(10)
    assert (first.embedded_text, second.embedded_text) == ("Heading > Sub\ntext", "plain")
    assert first.embedded_hash == Chunk(1, 1, "text", "Heading > Sub").embedded_hash
    assert [chunk.id for chunk in store.pending(1)] == [first.id]
    assert store.pending(0) == []


def test_a_vector_can_be_replaced(store):
    store.set_embedder(IDENTITY, "bits")
    store.put_document(document(), chunks_of("one"), {})
    chunk_id = store.pending(1)[0].id
    store.put_vectors({chunk_id: vector_for("one")})
    store.put_vectors({chunk_id: vector_for("two")})
    with store.reading() as snapshot:
        assert snapshot.vector_scores(vector_for("two"), [chunk_id])[chunk_id] == pytest.approx(1.0, abs=1e-3)
        assert snapshot.counts().pending == 0
    assert store.verify() == []


# --- snapshots, threads, reopening -------------------------------------------------------------


def test_a_snapshot_sees_nothing_that_is_committed_later(store):
    store.set_embedder(IDENTITY, "bits")
    chunks = chunks_of("before")
    store.put_document(document(), chunks, vectors_of(chunks))
    with store.reading() as old:
        later = chunks_of("after")
        store.put_document(document("memory/b.md"), later, vectors_of(later))
        store.remove_documents("memory", ["memory/a.md"])
        with store.reading() as new:
            assert {path for _, path in new.documents()} == {"memory/b.md"}
            assert len(new.keyword_matches(terms("before"), limit=5, scope=EVERYTHING)) == 0
            assert new.vector_matches(vector_for("before"), limit=1, scope=EVERYTHING)[0].score < 0.99
        assert {path for _, path in old.documents()} == {"memory/a.md"}
        assert len(old.keyword_matches(terms("before"), limit=5, scope=EVERYTHING)) == 1
        assert len(old.keyword_matches(terms("after"), limit=5, scope=EVERYTHING)) == 0
        (match,) = old.vector_matches(vector_for("before"), limit=5, scope=EVERYTHING)
        assert match.score == pytest.approx(1.0, abs=1e-3)


def test_a_snapshot_cannot_be_used_after_its_end(store):
    with store.reading() as snapshot:
        snapshot.counts()
    with pytest.raises(NotewellError):
        snapshot.counts()


def test_a_closed_store_says_so(store):
    store.close()
    with pytest.raises(NotewellError), store.reading():
        pass
    with pytest.raises(NotewellError):
        store.put_document(document(), [], {})


def test_everything_is_there_after_reopening(open_store):
    store = open_store()
    store.set_embedder(IDENTITY, "bits")
    chunks = chunks_of("one", "two")
    store.put_document(document(), chunks, vectors_of(chunks[:1]))
    store.optimize()
    store.close()
    again = open_store()
    assert found(again, "one", "two") == ["one", "two"]
    assert nearest(again, "one") == ["one"]
    assert [chunk.embedded_text for chunk in again.pending(5)] == ["two"]
    assert again.verify() == []


def test_many_threads_read_while_one_writes(store):
    """Each document holds its chunks twice as often as any reader may see it torn: all of one round, or none."""
    store.set_embedder(IDENTITY, "bits")
    rounds, problems = 25, []
    done = threading.Event()

    def write():
        try:
            for number in range(rounds):
                chunks = chunks_of(*(f"round{number} part{part}" for part in range(4)))
                store.put_document(document(size=number), chunks, vectors_of(chunks))
        except Exception as error:  # noqa: BLE001
            problems.append(error)
        finally:
            done.set()

    def read():
        try:
            while not done.is_set():
                with store.reading() as snapshot:
                    counts = snapshot.counts()
                    stamps = list(snapshot.documents().values())
                    if not stamps:
                        continue
                    word = f"round{stamps[0].stamp.size}"
                    matches = snapshot.keyword_matches(terms(word), limit=9, scope=EVERYTHING)
                    by_vector = snapshot.vector_matches(vector_for("x"), limit=9, scope=EVERYTHING)
                    seen = {match.chunk_id for match in matches}
                    assert counts == Counts(files=1, chunks=4, pending=0, embedded=4)
                    assert len(seen) == 4
                    assert {match.chunk_id for match in by_vector} == seen
                    assert len(snapshot.chunks(seen)) == 4
        except Exception as error:  # noqa: BLE001
            problems.append(error)

    threads = [threading.Thread(target=write), *(threading.Thread(target=read) for _ in range(6))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert problems == []
    assert store.verify() == []


def test_a_skipped_chunk_waits_for_no_vector_but_may_get_one(store):
    store.put_document(document("a.md"), chunks_of("one", "two"), {})
    first, second = [chunk.id for chunk in store.pending(10)]
    store.skip_vectors([first, 10**9])
    assert [chunk.id for chunk in store.pending(10)] == [second]
    with store.reading() as snapshot:
        assert snapshot.counts() == Counts(files=1, chunks=2, pending=1, embedded=0)
    assert store.verify() == []


def test_two_threads_may_write(store):
    def write(name):
        for number in range(20):
            store.put_document(document(f"memory/{name}{number}.md"), chunks_of(f"{name} {number}"), {})

    threads = [threading.Thread(target=write, args=(name,)) for name in ("left", "right")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    with store.reading() as snapshot:
        assert snapshot.counts() == Counts(files=40, chunks=40, pending=40, embedded=0)
    assert store.verify() == []


# --- any history gives the same answers as a fresh store ---------------------------------------

WORDS = ["tea", "milk", "kettle", "printer", "wifi"]
TEXTS = st.lists(st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map(" ".join), max_size=4)
STEPS = st.lists(
    st.tuples(st.sampled_from(["put", "put", "put", "remove", "embed", "optimize"]), st.sampled_from("abc"), TEXTS),
    max_size=14,
)


def messages(texts):
    return [
        prepared(text, line=10 * number + 1, turn=number + 1, parts=len(texts)) for number, text in enumerate(texts)
    ]


def answers(store):
    """Everything a reader can learn, without ids."""
    with store.reading() as snapshot:
        chunks = snapshot.chunks(range(1, 1000))
        keyword = snapshot.keyword_matches(terms(*WORDS), limit=99, scope=EVERYTHING)
        near = snapshot.vector_matches(vector_for("tea"), limit=99, scope=EVERYTHING)
        place = {
            key: (chunk.path, chunk.first_line, chunk.turn, chunk.parts, chunk.text) for key, chunk in chunks.items()
        }
        return {
            "documents": snapshot.documents(),
            "counts": snapshot.counts(),
            "chunks": sorted(place.values()),
            "keyword": sorted((place[match.chunk_id], round(match.score, 9)) for match in keyword),
            "near": sorted((place[match.chunk_id], match.score) for match in near),
            "frequencies": snapshot.document_frequencies(terms(*WORDS), at_most=99),
        }


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS)
def test_any_history_equals_a_fresh_store(open_store, steps, tmp_path_factory):
    folder = tmp_path_factory.mktemp("history").resolve()
    worn, fresh = open_store(folder / "worn"), open_store(folder / "fresh")
    for store in (worn, fresh):
        store.set_embedder(IDENTITY, "bits")
    current = {}
    for action, name, texts in steps:
        path = f"memory/{name}.md"
        if action == "put":
            worn.put_document(document(path), messages(texts), {})
            current[path] = texts
        elif action == "remove":
            worn.remove_documents("memory", [path])
            current.pop(path, None)
        elif action == "embed":
            embed_pending(worn)
        else:
            worn.optimize()
    embed_pending(worn)
    for path, texts in current.items():
        chunks = messages(texts)
        fresh.put_document(document(path), chunks, vectors_of(chunks))
    assert worn.verify() == []
    assert answers(worn) == answers(fresh)
    worn.close()
    fresh.close()
