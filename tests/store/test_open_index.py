"""Opening index files: new, missing, corrupt, foreign, older, newer, read-only."""

from __future__ import annotations

import multiprocessing
import os
import random
import shutil
import subprocess
import sys
import threading

import apsw
import pytest

from notewell.errors import IndexBusyError, IndexCorruptError, IndexReadOnlyError, StoreError
from notewell.store.sqlite import open_index, schema
from notewell.store.sqlite.connection import connect, lock_wait_limit
from notewell.testing.samples import IDENTITY, chunks_of, document, embed_pending, prepared, terms, vectors_of
from notewell.types import EVERYTHING, ChunkPlace, EntryLabel, Scope
from tests.store.other_user import run_as_other_user


def new_index(path, *texts):
    store = open_index(path, create=True, read_only=False)
    store.set_embedder(IDENTITY, "bits")
    if texts:
        chunks = chunks_of(*texts)
        store.put_document(document(), chunks, vectors_of(chunks))
    return store


def texts_in(store) -> set[str]:
    with store.reading() as snapshot:
        return {chunk.text for chunk in snapshot.chunks(range(1, 1000)).values()}


@pytest.mark.parametrize("read_only", [True, False])
def test_a_missing_file_is_not_created(tmp_path, read_only):
    with pytest.raises(FileNotFoundError):
        open_index(tmp_path / "index.sqlite", create=False, read_only=read_only)
    assert list(tmp_path.iterdir()) == []


def test_a_new_file_and_its_folder_are_created(tmp_path):
    path = tmp_path / "deep" / "er" / "index.sqlite"
    new_index(path, "one").close()
    assert [file.name for file in path.parent.iterdir()] == ["index.sqlite"]  # the log is folded in on closing


@pytest.mark.parametrize("name", ["with space.sqlite", "per%20cent?.sqlite", "üñï#1.sqlite"])
def test_any_file_name_will_do(tmp_path, name):
    if os.name == "nt" and "?" in name:
        pytest.skip("Windows knows no such file name")
    new_index(tmp_path / name, "one").close()
    assert (tmp_path / name).stat().st_size > 4096
    store = open_index(tmp_path / name, create=False, read_only=True)
    assert texts_in(store) == {"one"}
    store.close()


def test_an_unknown_vector_driver_is_refused(tmp_path):
    with pytest.raises(StoreError, match="unknown vector driver"):
        open_index(tmp_path / "index.sqlite", create=True, read_only=False, vector_driver="faiss")


@pytest.mark.parametrize("read_only", [True, False])
@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"a text that is no database\n" * 400, id="text"),
        pytest.param(b"SQLite format 3\0" + bytes(range(256)) * 40, id="a header and noise"),
        pytest.param(b"", id="nothing"),
    ],
)
def test_a_file_that_is_no_index_is_called_corrupt_and_left_alone(tmp_path, content, read_only):
    path = tmp_path / "index.sqlite"
    path.write_bytes(content)
    with pytest.raises(IndexCorruptError):
        open_index(path, create=False, read_only=read_only)
    assert path.read_bytes() == content


def test_an_empty_file_left_by_a_crash_can_be_begun_in(tmp_path):
    path = tmp_path / "index.sqlite"
    path.touch()
    store = new_index(path, "one")
    assert texts_in(store) == {"one"}
    store.close()


def test_a_foreign_database_is_refused_and_left_alone(tmp_path):
    path = tmp_path / "index.sqlite"
    with apsw.Connection(os.fspath(path)) as foreign:
        foreign.execute("CREATE TABLE precious (value)").fetchall()
    foreign.close()
    before = path.read_bytes()
    with pytest.raises(IndexCorruptError, match="not an index"):
        open_index(path, create=True, read_only=False)
    assert path.read_bytes() == before


def test_a_missing_table_is_corrupt(tmp_path):
    path = tmp_path / "index.sqlite"
    new_index(path).close()
    with apsw.Connection(os.fspath(path)) as connection:
        connection.execute("DROP TABLE chunk_texts").fetchall()
    connection.close()
    with pytest.raises(IndexCorruptError, match="chunk_texts"):
        open_index(path, create=False, read_only=False)


def test_a_newer_file_is_refused_and_says_what_to_do(tmp_path):
    path = tmp_path / "index.sqlite"
    new_index(path).close()
    with apsw.Connection(os.fspath(path)) as connection:
        connection.execute("PRAGMA user_version = 999").fetchall()
    connection.close()
    with pytest.raises(StoreError, match="newer release") as caught:
        open_index(path, create=True, read_only=False)
    assert not isinstance(caught.value, IndexCorruptError)
    assert "upgrade" in caught.value.hint


def test_an_older_file_is_brought_up_to_date_in_one_step(tmp_path):
    path = tmp_path / "index.sqlite"
    new_index(path, "one").close()
    db = connect(path, read_only=False)
    later = (*schema.MIGRATIONS, "CREATE TABLE added (value)", "INSERT INTO added VALUES (1)")
    schema.migrate(db, migrations=later)
    assert db.value("PRAGMA user_version") == len(schema.MIGRATIONS) + 2
    schema.migrate(db, migrations=later)
    assert db.value("SELECT count(*) FROM added") == 1
    with pytest.raises(StoreError):
        schema.migrate(db, migrations=(*later, "CREATE TABLE half (value)", "this is no statement"))
    assert db.value("PRAGMA user_version") == len(schema.MIGRATIONS) + 2
    assert db.value("SELECT count(*) FROM sqlite_schema WHERE name = 'half'") == 0
    assert db.value("SELECT count(*) FROM chunks") == 1
    db.close()


def write_version_1(path):
    """Write an index of the first schema: a note and a conversation, whose chunks count their terms."""
    path.touch()
    db = connect(path, read_only=False)
    db.rows("PRAGMA journal_mode = WAL")
    schema.migrate(db, migrations=schema.MIGRATIONS[:1])
    for number, (source, text) in enumerate((("memory", "tea is ready"), ("sessions", "User: more tea")), start=1):
        chunk = prepared(text).chunk
        db.rows("INSERT INTO documents VALUES (?, ?, ?, 7, 7000, 'hash', NULL, 0)", (number, source, f"{source}/a"))
        db.rows(
            "INSERT INTO chunks (id, document_id, first_line, last_line, has_vector, embedded_hash, context_length,"
            " term_count) VALUES (?, ?, 1, 1, 0, ?, 0, 3)",
            (number, number, bytes.fromhex(chunk.embedded_hash)),
        )
        db.rows("INSERT INTO chunk_texts VALUES (?, '', ?)", (number, text))
        db.rows("INSERT INTO terms (rowid, text, context) VALUES (?, ?, '')", (number, text.lower()))
    db.rows("INSERT INTO cursors VALUES (2, 'far')")
    db.rows("UPDATE totals SET documents = 2, chunks = 2")
    assert db.value("PRAGMA user_version") == 1
    db.close()


def test_a_file_of_the_second_schema_learns_labels(tmp_path):
    path = tmp_path / "index.sqlite"
    write_version_1(path)
    db = connect(path, read_only=False)
    schema.migrate(db, migrations=schema.MIGRATIONS[:2])
    assert db.value("PRAGMA user_version") == 2
    db.close()
    store = open_index(path, create=False, read_only=False)
    with store.reading() as snapshot:
        assert {chunk.text: chunk.label for chunk in snapshot.chunks([1, 2]).values()} == {
            "tea is ready": None,
            "User: more tea": None,
        }
        assert snapshot.keyword_matches(terms("tea"), limit=5, scope=Scope(category="fact")) == []
    label = EntryLabel("k3f9a2qx", "fact", 3)
    store.put_document(document("memory/a"), [prepared("tea is ready", label=label)], {})
    with store.reading() as snapshot:
        (match,) = snapshot.keyword_matches(terms("tea"), limit=5, scope=Scope(category="fact"))
        assert snapshot.chunks([match.chunk_id])[match.chunk_id].label == label
    assert store.verify() == []
    store.close()


def test_a_file_of_the_first_schema_keeps_what_it_holds(tmp_path):
    path = tmp_path / "index.sqlite"
    write_version_1(path)
    store = open_index(path, create=False, read_only=False)
    assert texts_in(store) == {"tea is ready", "User: more tea"}
    with store.reading() as snapshot:
        assert snapshot.places([1, 2]) == {1: ChunkPlace(1, turn=0, parts=1), 2: ChunkPlace(2, turn=0, parts=1)}
        assert len(snapshot.keyword_matches(terms("tea"), limit=5, scope=EVERYTHING)) == 2
        assert snapshot.cursor("sessions", "sessions/a") == "far"
    assert store.verify() == []
    store.set_embedder(IDENTITY, "bits")
    assert embed_pending(store) == 2
    more = [prepared("User: thanks", line=2, turn=2, parts=1)]
    store.append_document(document("sessions/a", source="sessions"), more, vectors_of(more), cursor="farther")
    assert store.verify() == []
    store.close()
    again = open_index(path, create=False, read_only=True)
    assert texts_in(again) == {"tea is ready", "User: more tea", "User: thanks"}
    assert again.verify() == []
    again.close()


def test_an_older_file_that_may_not_be_written_is_refused_and_left_alone(tmp_path):
    path = tmp_path / "index.sqlite"
    write_version_1(path)
    before = path.read_bytes()
    with pytest.raises(IndexReadOnlyError, match="older release") as caught:
        open_index(path, create=False, read_only=True)
    assert "notewell index" in caught.value.hint
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    "corruption",
    [
        pytest.param("turn = -1", id="a message before the first"),
        pytest.param("turn = 'two'", id="a message that is no number"),
        pytest.param("turn = 1.5", id="half a message"),
        pytest.param("parts = 0", id="no part"),
        pytest.param("parts = -1", id="less than no part"),
        pytest.param("parts = x'02'", id="bytes for a number"),
        pytest.param("document_id = 'one'", id="a document that is no number"),
    ],
)
def test_a_place_that_cannot_have_been_stored_is_corrupt(tmp_path, corruption):
    path = tmp_path / "index.sqlite"
    new_index(path, "one", "two", "three").close()
    with apsw.Connection(os.fspath(path)) as connection:
        connection.execute(f"UPDATE chunks SET {corruption} WHERE id = 2").fetchall()
    connection.close()
    store = open_index(path, create=False, read_only=False)
    with store.reading() as snapshot:
        assert snapshot.places([1, 3]).keys() == {1, 3}
        with pytest.raises(IndexCorruptError, match="the place of a chunk in it is corrupt"):
            snapshot.places([1, 2, 3])
    store.close()


def test_corrupt_pages_are_reported_never_crash_and_never_loop(tmp_path):
    path = tmp_path / "whole.sqlite"
    store = new_index(path, *(f"text {number} " * 50 for number in range(60)))
    store.close()
    whole = path.read_bytes()
    chance = random.Random(7)
    noticed = 0
    for number in range(60):
        broken = bytearray(whole)
        for _ in range(chance.randint(1, 40)):
            broken[chance.randrange(len(broken))] ^= 1 << chance.randrange(8)
        if number % 5 == 0:
            broken = broken[: chance.randrange(100, len(broken))]
        copy = tmp_path / f"broken-{number}.sqlite"
        copy.write_bytes(broken)
        try:
            corrupt = open_index(copy, create=False, read_only=False)
        except StoreError:
            noticed += 1
            continue
        try:
            noticed += bool(corrupt.verify())
            with corrupt.reading() as snapshot:
                snapshot.keyword_matches(terms("text"), limit=200, scope=EVERYTHING)
        except StoreError:
            noticed += 1
        finally:
            corrupt.close()
    assert noticed > 30


# --- read-only ---------------------------------------------------------------------------------


def test_a_store_opened_for_reading_refuses_to_write(tmp_path):
    new_index(tmp_path / "index.sqlite", "one").close()
    store = open_index(tmp_path / "index.sqlite", create=False, read_only=True)
    assert store.read_only
    for write in (
        lambda: store.put_document(document("b.md"), [], {}),
        lambda: store.write_meta({"a": "b"}),
        lambda: store.remove_documents("memory", ["memory/a.md"]),
        lambda: store.touch_documents([document()]),
        lambda: store.put_vectors(vectors_of(chunks_of("one"))),
        store.optimize,
    ):
        with pytest.raises(IndexReadOnlyError):
            write()
    store.set_embedder(IDENTITY, "bits")  # nothing to change, so nothing to refuse
    assert texts_in(store) == {"one"}
    assert store.verify() == []
    store.close()


def test_a_reader_sees_what_another_process_writes(tmp_path):
    path = tmp_path / "index.sqlite"
    writer = new_index(path, "one")
    reader = open_index(path, create=False, read_only=True)
    assert texts_in(reader) == {"one"}
    writer.put_document(document("b.md"), chunks_of("two"), {})
    assert texts_in(reader) == {"one", "two"}
    reader.close()
    writer.close()


USE_READ_ONLY = """
from pathlib import Path
from notewell.errors import IndexReadOnlyError
from notewell.store.sqlite import open_index
from notewell.types import EVERYTHING, Term
path = Path(sys.argv[1]) / "index.sqlite"
try:
    open_index(path, create=False, read_only=False)
except IndexReadOnlyError:
    print("refused")
store = open_index(path, create=False, read_only=True)
with store.reading() as snapshot:
    found = snapshot.keyword_matches([Term(("one",)), Term(("two",))], limit=5, scope=EVERYTHING)
    near = snapshot.vector_matches(numpy.ones(32, numpy.float32), limit=5, scope=EVERYTHING)
    print(len(found), len(near), len(store.verify()))
"""


@pytest.mark.slow
def test_an_index_in_a_read_only_folder_answers(tmp_path):
    """Nobody has it open and nothing can be created beside it: it is opened as immutable."""
    folder = tmp_path / "state"
    new_index(folder / "index.sqlite", "one").close()
    assert [file.name for file in folder.iterdir()] == ["index.sqlite"]
    assert run_as_other_user(USE_READ_ONLY, folder).split() == ["refused", "1", "1", "0"]
    assert [file.name for file in folder.iterdir()] == ["index.sqlite"]


@pytest.mark.slow
def test_a_read_only_folder_shows_what_a_writer_elsewhere_commits(tmp_path):
    """The writer's log is there and readable: it is used, not ignored."""
    folder = tmp_path / "state"
    store = new_index(folder / "index.sqlite", "one")
    chunks = chunks_of("two")
    store.put_document(document("b.md"), chunks, vectors_of(chunks))
    assert (folder / "index.sqlite-wal").stat().st_size > 0
    assert run_as_other_user(USE_READ_ONLY, folder).split() == ["refused", "2", "2", "0"]
    store.close()


OPEN_READ_ONLY = """
from pathlib import Path
from notewell.errors import IndexReadOnlyError
from notewell.store.sqlite import open_index
try:
    open_index(Path(sys.argv[1]) / "index.sqlite", create=False, read_only=True)
except IndexReadOnlyError as error:
    print("log" in error.message, bool(error.hint))
"""


@pytest.mark.slow
def test_a_log_that_cannot_be_read_is_never_ignored(tmp_path):
    """A copy taken while the index was open: its newest changes are only in the log, which needs mending first."""
    store = new_index(tmp_path / "live" / "index.sqlite", "one")
    folder = tmp_path / "copy"
    folder.mkdir()
    for name in ("index.sqlite", "index.sqlite-wal"):
        shutil.copy(tmp_path / "live" / name, folder / name)
    store.close()
    assert run_as_other_user(OPEN_READ_ONLY, folder).split() == ["True", "True"]


# --- several processes and threads -------------------------------------------------------------


def test_a_writer_that_waits_in_vain_says_busy(tmp_path):
    path = tmp_path / "index.sqlite"
    holder = new_index(path, "one")
    waiting = open_index(path, create=False, read_only=False)
    with holder._writing(), lock_wait_limit(0.05), pytest.raises(IndexBusyError) as caught:
        waiting.put_document(document("b.md"), [], {})
    assert caught.value.exit_code == 1
    waiting.put_document(document("b.md"), [], {})
    waiting.close()
    holder.close()


def _create_and_put(path, name, start):
    start.wait()
    store = open_index(path, create=True, read_only=False)
    for number in range(10):
        store.put_document(document(f"{name}-{number}.md"), chunks_of(f"{name} {number}"), {})
    store.close()


@pytest.mark.slow
def test_processes_that_create_the_same_index_share_it(tmp_path):
    spawn = multiprocessing.get_context("spawn")
    start = spawn.Event()
    path = tmp_path / "index.sqlite"
    workers = [spawn.Process(target=_create_and_put, args=(path, name, start)) for name in "abc"]
    for worker in workers:
        worker.start()
    start.set()
    for worker in workers:
        worker.join(timeout=60)
    assert [worker.exitcode for worker in workers] == [0, 0, 0]
    store = open_index(path, create=False, read_only=False)
    with store.reading() as snapshot:
        assert snapshot.counts().files == 30
    assert store.verify() == []
    store.close()


FORK = """
import os, sys, threading
from pathlib import Path
from notewell.testing.samples import chunks_of, document
from notewell.store.sqlite import open_index
store = open_index(Path(sys.argv[1]), create=True, read_only=False)
store.put_document(document("parent.md"), chunks_of("before"), {})
with store.reading() as busy:  # one connection idle, one writer, one in use
    with store.reading():
        pass
    child = os.fork()
    if child == 0:
        store.put_document(document("child.md"), chunks_of("in the child"), {})
        with store.reading() as snapshot:
            ok = snapshot.counts().files == 2
        os._exit(0 if ok else 1)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert busy.counts().files == 1, "the parent's snapshot must not move"
store.put_document(document("after.md"), chunks_of("after"), {})
with store.reading() as snapshot:
    print(status, snapshot.counts().files, store.verify())
store.close()
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_child_uses_connections_of_its_own(tmp_path):
    result = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORK, os.fspath(tmp_path / "index.sqlite")],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert result.stdout.strip() == "0 3 []", result.stderr


def test_more_snapshots_at_once_than_connections_are_kept(tmp_path):
    store = new_index(tmp_path / "index.sqlite", "one")
    together = threading.Barrier(20, timeout=30)
    seen = []

    def read():
        with store.reading() as snapshot:
            together.wait()
            seen.append(snapshot.counts().chunks)

    threads = [threading.Thread(target=read) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert seen == [1] * 20
    store.close()
    assert [file.name for file in tmp_path.iterdir()] == ["index.sqlite"]


@pytest.mark.slow
def test_keyword_use_never_imports_numpy(tmp_path):
    script = (
        "import sys; from pathlib import Path; from tests.store.builders_without_numpy import use;"
        "use(Path(sys.argv[1])); print('numpy' in sys.modules)"
    )
    result = subprocess.run(
        [sys.executable, "-c", script, os.fspath(tmp_path / "index.sqlite")],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert result.stdout.strip() == "False", result.stderr
