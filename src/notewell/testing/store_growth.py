"""Checks documents that grow at their end, as transcripts do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from notewell.errors import NotewellError
from notewell.testing.samples import (
    IDENTITY,
    StoreFixtures,
    chunks_of,
    document,
    embed_pending,
    ids_by_text,
    prepared,
    vector_for,
    vectors_of,
)
from notewell.types import Counts

if TYPE_CHECKING:
    from notewell.protocols import Store
    from notewell.types import StoredDocument

PATH = "sessions/a.jsonl"


def talk(**facts: Any) -> StoredDocument:
    """Return the transcript of these tests."""
    return document(PATH, source="sessions", **facts)


def cursor(store: Store, path: str = PATH) -> str | None:
    """Return where reading goes on."""
    with store.reading() as snapshot:
        return snapshot.cursor("sessions", path)


class GrowingDocumentsContract(StoreFixtures):
    """What a store must do with documents that are appended to and rewritten."""

    @pytest.fixture
    def grown(self, store: Store) -> Store:
        """A document of two messages, with their vectors."""
        store.set_embedder(IDENTITY, "bits")
        chunks = [prepared("first", line=1, turn=1), prepared("second", line=11, turn=2)]
        store.append_document(talk(), chunks, vectors_of(chunks), cursor="one")
        return store

    def test_a_document_begins_with_its_first_part(self, grown: Store) -> None:
        assert set(ids_by_text(grown)) == {"first", "second"}
        assert cursor(grown) == "one"
        with grown.reading() as snapshot:
            assert snapshot.counts() == Counts(files=1, chunks=2, pending=0, embedded=2)
            assert snapshot.documents() == {("sessions", PATH): talk()}
        assert grown.verify() == []

    def test_what_is_appended_joins_the_chunks_that_are_there(self, grown: Store) -> None:
        before = ids_by_text(grown)
        with grown.reading() as snapshot:
            chunks_before = snapshot.chunks(before.values())
            scores_before = snapshot.vector_scores(vector_for("first"), before.values())
        more = [prepared("third", line=21, turn=3), prepared("fourth", line=31, turn=4)]
        grown.append_document(talk(size=9), more, vectors_of(more[1:]), cursor="two")
        after = ids_by_text(grown)
        assert set(after) == {"first", "second", "third", "fourth"}
        assert before.items() <= after.items()
        assert max(before.values()) < after["third"] < after["fourth"]
        assert cursor(grown) == "two"
        assert [chunk.id for chunk in grown.pending(9)] == [after["third"]]
        with grown.reading() as snapshot:
            assert snapshot.chunks(before.values()) == chunks_before
            assert snapshot.vector_scores(vector_for("first"), before.values()) == scores_before
            assert snapshot.documents() == {("sessions", PATH): talk(size=9)}
            assert snapshot.counts() == Counts(files=1, chunks=4, pending=1, embedded=3)
        assert grown.verify() == []

    def test_what_was_said_before_may_be_said_again(self, grown: Store) -> None:
        before = ids_by_text(grown)
        again = [prepared("first", line=21, turn=3)]
        grown.append_document(talk(), again, vectors_of(again), cursor="two")
        with grown.reading() as snapshot:
            found = snapshot.chunks(range(1, 99))
            assert sorted((chunk.turn, chunk.first_line, chunk.text) for chunk in found.values()) == [
                (1, 1, "first"),
                (2, 11, "second"),
                (3, 21, "first"),
            ]
            assert found[before["first"]].turn == 1
        assert grown.verify() == []

    def test_nothing_new_changes_the_cursor_alone(self, grown: Store) -> None:
        before = ids_by_text(grown)
        grown.append_document(talk(), [], {}, cursor="later")
        assert (ids_by_text(grown), cursor(grown)) == (before, "later")
        with grown.reading() as snapshot:
            assert snapshot.counts() == Counts(files=1, chunks=2, pending=0, embedded=2)

    def test_removing_a_document_forgets_its_cursor(self, grown: Store) -> None:
        grown.remove_documents("sessions", [PATH])
        assert cursor(grown) is None
        with grown.reading() as snapshot:
            assert snapshot.counts() == Counts(files=0, chunks=0, pending=0, embedded=0)
        assert grown.verify() == []

    def test_a_document_that_was_put_whole_has_no_cursor(self, store: Store) -> None:
        store.put_document(document(), chunks_of("x"), {})
        with store.reading() as snapshot:
            assert snapshot.cursor("memory", "memory/a.md") is None
            assert snapshot.cursor("sessions", "none") is None

    def test_a_rewrite_keeps_what_stays_and_removes_the_rest(self, grown: Store) -> None:
        before = ids_by_text(grown)
        with grown.rewriting("sessions", PATH) as rewrite:
            rewrite.add([prepared("new on top", line=1, turn=1)], {})
            rewrite.add([prepared("first", line=5, turn=2), prepared("new below", line=9, turn=3)], {})
            rewrite.finish(talk(size=5), "again")
        after = ids_by_text(grown)
        assert set(after) == {"new on top", "first", "new below"}
        assert after["first"] == before["first"]
        assert cursor(grown) == "again"
        with grown.reading() as snapshot:
            kept = snapshot.chunks([after["first"]])[after["first"]]
            assert (kept.first_line, kept.turn) == (5, 2)
            assert snapshot.documents() == {("sessions", PATH): talk(size=5)}
            assert snapshot.counts() == Counts(files=1, chunks=3, pending=2, embedded=1)
        embed_pending(grown)
        assert grown.verify() == []

    def test_equal_chunks_are_paired_one_by_one_across_parts(self, store: Store) -> None:
        store.append_document(talk(), chunks_of("same", "same"), {}, cursor="one")
        with store.rewriting("sessions", PATH) as rewrite:
            for line in (1, 2, 3):
                rewrite.add([prepared("same", line=line)], {})
            rewrite.finish(talk(), "two")
        with store.reading() as snapshot:
            found = snapshot.chunks(range(1, 99))
            assert sorted(chunk.first_line for chunk in found.values()) == [1, 2, 3]
            assert {1, 2} <= set(found)
            assert snapshot.counts().chunks == 3
        assert store.verify() == []

    @pytest.mark.parametrize("way", ["an exception", "not finished"])
    def test_a_rewrite_that_is_cut_short_changes_nothing(self, way: str, grown: Store) -> None:
        before = ids_by_text(grown)

        def rewrite() -> None:
            with grown.rewriting("sessions", PATH) as rewriting:
                rewriting.add([prepared("half", line=1)], {})
                if way == "an exception":
                    raise OSError("the disk is gone")

        with pytest.raises((OSError, NotewellError)):
            rewrite()
        assert (ids_by_text(grown), cursor(grown)) == (before, "one")
        assert grown.verify() == []

    def test_a_rewrite_may_begin_a_document(self, store: Store) -> None:
        with store.rewriting("sessions", PATH) as rewrite:
            rewrite.add(chunks_of("one"), {})
            rewrite.finish(talk(), "c")
        with store.reading() as snapshot:
            assert snapshot.counts() == Counts(files=1, chunks=1, pending=1, embedded=0)
        assert store.verify() == []
