"""Checks a store: documents, edits, snapshots, threads and reopening."""

from __future__ import annotations

import threading
from datetime import date
from typing import TYPE_CHECKING

import numpy as np
import pytest

from notewell.errors import BadVectorError, IndexMismatchError, NotewellError
from notewell.testing.samples import (
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
from notewell.testing.store_growth import GrowingDocumentsContract
from notewell.testing.store_search import BAD_VECTORS, DECISION, TEAM, StoreSearchContract, found, nearest, put, seen
from notewell.types import EVERYTHING, Chunk, ChunkPlace, Counts, EmbedderIdentity, SourceCounts

if TYPE_CHECKING:
    from notewell.protocols import Store, Vector
    from notewell.testing.samples import OpenStore


class StoreContract(StoreSearchContract, GrowingDocumentsContract):
    """Everything that a store must do; name your store in `create_store`."""

    def test_a_new_store_is_empty(self, store: Store) -> None:
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

    def test_documents_come_back_as_they_were_put(self, store: Store) -> None:
        dated = document("memory/2026-11-15.md", dated="2026-11-15", size=7)
        talk = document("talk.jsonl", source="sessions")
        store.put_document(dated, chunks_of("one"), {})
        store.put_document(talk, [], {})
        with store.reading() as snapshot:
            assert snapshot.documents() == {("memory", "memory/2026-11-15.md"): dated, ("sessions", "talk.jsonl"): talk}
            assert snapshot.documents("sessions") == {("sessions", "talk.jsonl"): talk}
            assert snapshot.counts() == Counts(files=2, chunks=1, pending=1, embedded=0)
            assert list(snapshot.source_counts()) == [SourceCounts("memory", 1, 1), SourceCounts("sessions", 1, 0)]

    def test_chunks_come_back_as_they_were_put(self, store: Store) -> None:
        store.put_document(document(dated="2026-01-02"), [prepared("Tea\nis ready", context="Kitchen", line=4)], {})
        (chunk_id,) = ids_by_text(store).values()
        with store.reading() as snapshot:
            chunk = snapshot.chunks([chunk_id, chunk_id + 1])[chunk_id]
        assert (chunk.id, chunk.source, chunk.path) == (chunk_id, "memory", "memory/a.md")
        assert (chunk.first_line, chunk.last_line) == (4, 5)
        assert (chunk.text, chunk.context, chunk.dated) == ("Tea\nis ready", "Kitchen", date(2026, 1, 2))
        assert (chunk.turn, chunk.parts) == (0, 1)

    def test_the_chunks_of_a_document_come_in_order_of_their_lines(self, store: Store) -> None:
        store.put_document(document("memory/other.md"), chunks_of("elsewhere"), {})
        store.put_document(document(), [prepared("below", line=9), prepared("above", line=2)], {})
        store.put_document(document(), [prepared("below", line=9), prepared("above", line=2), prepared("top")], {})
        with store.reading() as snapshot:
            assert [chunk.text for chunk in snapshot.chunks_of("memory", "memory/a.md")] == ["top", "above", "below"]
            assert list(snapshot.chunks_of("sessions", "memory/a.md")) == []
        store.touch_documents([document("memory/other.md")._replace(private=True)])
        with store.reading_within(TEAM) as snapshot:
            assert list(snapshot.chunks_of("memory", "memory/other.md")) == []

    def test_a_chunk_knows_its_message_and_the_parts_of_it(self, store: Store) -> None:
        talk = [
            prepared("one", turn=1),
            prepared("two, first", turn=2, parts=2),
            prepared("two, last", turn=2, parts=2),
        ]
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

    def test_an_entry_keeps_its_label_and_a_new_label_costs_no_vector(self, store: Store) -> None:
        store.set_embedder(IDENTITY, "bits")
        store.put_document(document(), [prepared("plain"), prepared("tea at five", label=DECISION)], {})
        embed_pending(store)
        before = ids_by_text(store)
        changed = DECISION._replace(category="fact", importance=2)
        for plain, tea in ((None, DECISION), (DECISION, changed), (None, None)):
            store.put_document(document(), [prepared("plain", label=plain), prepared("tea at five", label=tea)], {})
            with store.reading() as snapshot:
                labels = {chunk.text: chunk.label for chunk in snapshot.chunks(before.values()).values()}
            assert labels == {"plain": plain, "tea at five": tea}
        assert ids_by_text(store) == before
        assert store.pending(5) == []
        assert store.verify() == []

    def test_touching_changes_the_stamp_and_nothing_else(self, store: Store) -> None:
        store.put_document(document(size=1), chunks_of("one"), {})
        before = ids_by_text(store)
        touched = document(size=99, dated="2026-03-04", text="new bytes, same text")
        store.touch_documents([touched, document("memory/not-there.md")])
        with store.reading() as snapshot:
            assert snapshot.documents() == {("memory", "memory/a.md"): touched}
        assert ids_by_text(store) == before
        assert store.verify() == []

    def test_meta_values_are_kept_and_replaced(self, open_store: OpenStore) -> None:
        store = open_store()
        store.write_meta({"profile": "1", "other": "ü"})
        store.write_meta({"profile": "2"})
        store.close()
        with open_store().reading() as snapshot:
            assert (snapshot.meta("profile"), snapshot.meta("other"), snapshot.meta("none")) == ("2", "ü", None)

    def test_an_edit_keeps_the_ids_and_vectors_of_chunks_that_only_moved(self, store: Store) -> None:
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

    def test_an_edit_tells_the_chunks_that_stay_their_new_message_and_parts(self, store: Store) -> None:
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

    def test_equal_chunks_are_counted_one_by_one(self, store: Store) -> None:
        store.put_document(document(), chunks_of("same", "same", "other"), {})
        with store.reading() as snapshot:
            before = [match.chunk_id for match in snapshot.keyword_matches(terms("same"), limit=9, scope=EVERYTHING)]
        store.put_document(document(), chunks_of("same", "other"), {})
        with store.reading() as snapshot:
            after = [match.chunk_id for match in snapshot.keyword_matches(terms("same"), limit=9, scope=EVERYTHING)]
            assert snapshot.counts().chunks == 2
        assert len(before) == 2
        assert after == before[:1]

    def test_a_heading_that_becomes_text_is_shown_as_text(self, store: Store) -> None:
        # Both chunks are embedded as the same words; only where the heading ends differs.
        store.put_document(document(), [prepared("is green", context="Tea")], {})
        store.put_document(document(), [prepared("Tea\nis green")], {})
        assert found(store, "tea") == ["Tea\nis green"]
        with store.reading() as snapshot:
            (match,) = snapshot.keyword_matches(terms("tea"), limit=9, scope=EVERYTHING)
            assert snapshot.chunks([match.chunk_id])[match.chunk_id].context == ""
        assert store.verify() == []

    def test_ids_are_never_used_twice(self, store: Store) -> None:
        store.put_document(document(), chunks_of("one"), {})
        first = ids_by_text(store)["one"]
        store.remove_documents("memory", ["memory/a.md"])
        store.put_document(document(), chunks_of("one"), {})
        assert ids_by_text(store)["one"] > first

    def test_a_renamed_document_takes_its_vectors_along(self, store: Store) -> None:
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

    def test_a_removed_document_leaves_no_trace(self, store: Store) -> None:
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

    def test_terms_beginning_lists_indexed_terms_in_order(self, store: Store) -> None:
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

    def test_removal_respects_the_source(self, store: Store) -> None:
        store.put_document(document("a.md", source="memory"), chunks_of("note"), {})
        store.put_document(document("a.md", source="sessions"), chunks_of("talk"), {})
        store.remove_documents("sessions", ["a.md"])
        assert found(store, "note", "talk") == ["note"]

    def test_vectors_for_chunks_that_are_gone_are_left_out(self, store: Store) -> None:
        store.set_embedder(IDENTITY, "bits")
        store.put_document(document("memory/stays.md"), chunks_of("stays"), {})
        store.put_document(document("memory/goes.md"), chunks_of("goes"), {})
        waiting = store.pending(10)
        store.remove_documents("memory", ["memory/goes.md"])
        store.put_vectors({chunk.id: vector_for(chunk.embedded_text) for chunk in waiting})
        assert nearest(store, "goes") == ["stays"]
        assert store.verify() == []

    def test_what_is_written_together_is_seen_together(self, store: Store) -> None:
        with store.together():
            store.put_document(document("memory/a.md"), chunks_of("tea"), {})
            store.put_document(document("memory/b.md"), chunks_of("milk"), {})
            with store.reading() as snapshot:
                assert snapshot.counts().files == 0
        with store.reading() as snapshot:
            assert snapshot.counts().files == 2
        assert store.verify() == []

    def test_what_fails_together_leaves_nothing(self, store: Store) -> None:
        store.put_document(document("memory/before.md"), chunks_of("water"), {})

        def write_and_fail() -> None:
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

    @pytest.mark.parametrize("bad", BAD_VECTORS)
    def test_a_bad_vector_is_refused_and_nothing_is_written(self, store: Store, bad: Vector) -> None:
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

    def test_vectors_need_an_embedder_first(self, store: Store) -> None:
        store.put_document(document(), chunks_of("one"), {})
        with pytest.raises(NotewellError, match="embedder"):
            store.put_vectors({store.pending(1)[0].id: vector_for("one")})

    def test_vectors_of_two_embedders_are_never_mixed(self, store: Store) -> None:
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

    def test_pending_chunks_say_what_to_embed_oldest_first(self, store: Store) -> None:
        store.put_document(document(), [prepared("text", context="Heading > Sub"), prepared("plain")], {})
        first, second = store.pending(10)
        assert (first.embedded_text, second.embedded_text) == ("Heading > Sub\ntext", "plain")
        assert first.embedded_hash == Chunk(1, 1, "text", "Heading > Sub").embedded_hash
        assert [chunk.id for chunk in store.pending(1)] == [first.id]
        assert store.pending(0) == []

    def test_a_vector_can_be_replaced(self, store: Store) -> None:
        store.set_embedder(IDENTITY, "bits")
        store.put_document(document(), chunks_of("one"), {})
        chunk_id = store.pending(1)[0].id
        store.put_vectors({chunk_id: vector_for("one")})
        store.put_vectors({chunk_id: vector_for("two")})
        with store.reading() as snapshot:
            assert snapshot.vector_scores(vector_for("two"), [chunk_id])[chunk_id] == pytest.approx(1.0, abs=1e-3)
            assert snapshot.counts().pending == 0
        assert store.verify() == []

    def test_a_snapshot_sees_nothing_that_is_committed_later(self, store: Store) -> None:
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

    def test_a_snapshot_cannot_be_used_after_its_end(self, store: Store) -> None:
        with store.reading() as snapshot:
            snapshot.counts()
        with pytest.raises(NotewellError):
            snapshot.counts()

    def test_a_closed_store_says_so(self, store: Store) -> None:
        store.close()
        with pytest.raises(NotewellError), store.reading():
            pass
        with pytest.raises(NotewellError):
            store.put_document(document(), [], {})

    def test_everything_is_there_after_reopening(self, open_store: OpenStore) -> None:
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

    def test_many_threads_read_while_one_writes(self, store: Store) -> None:
        """Each document holds its chunks twice as often as any reader may see it torn: all of one round, or none."""
        store.set_embedder(IDENTITY, "bits")
        rounds, problems = 25, []
        done = threading.Event()

        def write() -> None:
            try:
                for number in range(rounds):
                    chunks = chunks_of(*(f"round{number} part{part}" for part in range(4)))
                    store.put_document(document(size=number), chunks, vectors_of(chunks))
            except Exception as error:  # noqa: BLE001
                problems.append(error)
            finally:
                done.set()

        def read() -> None:
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

    def test_a_skipped_chunk_waits_for_no_vector_but_may_get_one(self, store: Store) -> None:
        store.put_document(document("a.md"), chunks_of("one", "two"), {})
        first, second = [chunk.id for chunk in store.pending(10)]
        store.skip_vectors([first, 10**9])
        assert [chunk.id for chunk in store.pending(10)] == [second]
        with store.reading() as snapshot:
            assert snapshot.counts() == Counts(files=1, chunks=2, pending=1, embedded=0)
        assert store.verify() == []

    def test_two_threads_may_write(self, store: Store) -> None:
        def write(name: str) -> None:
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

    def test_the_hashes_are_those_of_every_chunk(self, store: Store) -> None:
        store.set_embedder(IDENTITY, "int8")
        chunks = chunks_of("one", "two", "two")
        store.put_document(document(), chunks, {})
        assert store.embedded_hashes() == {prepared.chunk.embedded_hash for prepared in chunks}
        store.remove_documents("memory", ["memory/a.md"])
        assert store.embedded_hashes() == set()

    def test_erasing_leaves_the_rest_as_it_was(self, filled: Store) -> None:
        put(filled, "memory/goes.md", "harbour zanzibarquux")
        before = seen(filled, "harbour", TEAM)
        filled.remove_documents("memory", ["memory/goes.md"])
        filled.erase_deleted()
        filled.erase_deleted()
        assert seen(filled, "harbour", TEAM) == before - {"memory/goes.md"}
        assert filled.verify() == []
