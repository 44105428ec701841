"""What a removed note leaves behind: in no table at once, and after `erase_deleted` nowhere in the file."""

from __future__ import annotations

import os

import apsw
import pytest

from notewell.store.sqlite import open_index
from notewell.store.sqlite.segments import EXACT_LIMIT
from notewell.testing.samples import IDENTITY, chunks_of, document, vector_for, vectors_of

SECRET = "zanzibarquux"
OWN_TABLES = ("documents", "chunks", "chunk_texts", "vectors", "segment_slots", "terms_docsize")


@pytest.fixture(params=[3, EXACT_LIMIT + 10], ids=["few vectors", "many vectors"])
def store(request, tmp_path):
    opened = open_index(tmp_path / "index.sqlite", create=True, read_only=False)
    opened.set_embedder(IDENTITY, "bits")
    stays = chunks_of(*(f"harmless {number}" for number in range(request.param)))
    opened.put_document(document("memory/stays.md"), stays, vectors_of(stays))
    yield opened
    opened.close()


def row_counts(store) -> dict[str, int]:
    with store.reading() as snapshot:
        return {table: snapshot._db.value(f"SELECT count(*) FROM {table}") for table in OWN_TABLES}


def test_no_table_keeps_a_row_of_a_removed_document(store):
    before = row_counts(store)
    goes = chunks_of(f"the password is {SECRET}", f"{SECRET} again", context="Secrets")
    store.put_document(document(f"memory/{SECRET}.md"), goes, vectors_of(goes))
    assert row_counts(store) != before
    store.remove_documents("memory", [f"memory/{SECRET}.md"])
    assert row_counts(store) == before
    assert store.verify() == []


def test_after_erasing_the_file_holds_no_byte_of_it(store, tmp_path):
    goes = chunks_of(f"the password is {SECRET}")
    store.put_document(document(f"memory/{SECRET}.md"), goes, vectors_of(goes))
    vector = vector_for(goes[0].chunk.text).astype("<f2").tobytes()
    store.remove_documents("memory", [f"memory/{SECRET}.md"])
    store.erase_deleted()
    for file in tmp_path.iterdir():
        content = file.read_bytes()
        assert SECRET.encode() not in content, file.name
        assert vector not in content, file.name
        assert bytes.fromhex(goes[0].chunk.embedded_hash) not in content, file.name
    assert store.verify() == []
    with store.reading() as snapshot:
        assert snapshot.counts().files == 1


def test_churn_does_not_make_the_file_grow(tmp_path):
    store = open_index(tmp_path / "index.sqlite", create=True, read_only=False)
    store.set_embedder(IDENTITY, "bits")

    def round_of(number):
        for name in range(20):
            chunks = chunks_of(*(f"round{number} note{name} part{part} " * 40 for part in range(5)))
            store.put_document(document(f"{name}.md"), chunks, vectors_of(chunks))
        store.optimize()

    round_of(0)
    first = store.size_bytes()
    for number in range(1, 12):
        round_of(number)
    store.close()
    assert (tmp_path / "index.sqlite").stat().st_size < 2.5 * first


@pytest.mark.parametrize(
    ("corruption", "finding"),
    [
        pytest.param("DELETE FROM terms WHERE rowid = 1", "1 chunks have no keyword entry", id="terms"),
        pytest.param("DELETE FROM chunk_texts WHERE chunk_id = 1", "1 chunks have no text", id="text"),
        pytest.param("DELETE FROM documents", "3 chunks belong to no document", id="document"),
        pytest.param("DELETE FROM vectors WHERE chunk_id = 1", "1 chunks are marked embedded", id="vector"),
        pytest.param("UPDATE chunks SET has_vector = 0 WHERE id = 1", "1 vectors belong to no chunk", id="mark"),
        pytest.param("INSERT INTO chunk_texts VALUES (99, '', 'x')", "1 texts belong to no chunk", id="stray text"),
        pytest.param("INSERT INTO terms (rowid, text) VALUES (99, 'x')", "1 keyword entries", id="stray terms"),
        pytest.param("UPDATE totals SET chunks = 7, vectors = 0", "2 of the stored totals", id="totals"),
    ],
)
def test_verify_finds_what_is_out_of_step(tmp_path, corruption, finding):
    path = tmp_path / "index.sqlite"
    store = open_index(path, create=True, read_only=False)
    store.set_embedder(IDENTITY, "bits")
    chunks = chunks_of("one", "two", "three")
    store.put_document(document(), chunks, vectors_of(chunks))
    assert store.verify() == []
    with apsw.Connection(os.fspath(path)) as vandal:
        vandal.execute(corruption).fetchall()
    vandal.close()
    assert any(line.startswith(finding) for line in store.verify()), store.verify()
    store.close()


@pytest.mark.slow
@pytest.mark.parametrize(
    "corruption",
    [
        pytest.param("UPDATE segment_slots SET slot = slot + 1 WHERE chunk_id = 5", id="a slot"),
        pytest.param("UPDATE vector_segments SET freed = 3", id="the count of free slots"),
        pytest.param("UPDATE segment_blobs SET ids = zeroblob(length(ids))", id="the ids"),
        pytest.param("DELETE FROM segment_blobs", id="the blobs"),
        pytest.param("DELETE FROM vector_codec", id="the codec"),
    ],
)
def test_verify_looks_into_the_segments(tmp_path, corruption):
    path = tmp_path / "index.sqlite"
    store = open_index(path, create=True, read_only=False)
    store.set_embedder(IDENTITY, "bits")
    chunks = chunks_of(*(f"text {number}" for number in range(EXACT_LIMIT + 5)))
    store.put_document(document(), chunks, vectors_of(chunks))
    assert store.verify() == []
    with apsw.Connection(os.fspath(path)) as vandal:
        vandal.execute(corruption).fetchall()
    vandal.close()
    assert store.verify()
    store.close()
