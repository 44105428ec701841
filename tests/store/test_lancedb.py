"""LanceDB memory: entries, scores of hand-made vectors, bad input, several processes, and S3."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from datetime import UTC, datetime, timedelta, timezone
from importlib.util import find_spec

import pytest

from notewell import (
    BadVectorError,
    EmbedderUnavailableError,
    IndexMismatchError,
    LanceEntry,
    LanceMemory,
    QueryError,
    RememberError,
    Settings,
    StoreError,
)
from notewell.embedding.hashing import HashingEmbedder

pytestmark = [
    pytest.mark.slow,  # importing LanceDB takes longer than most rooms
    pytest.mark.skipif(find_spec("lancedb") is None, reason="needs the extra `lancedb`"),
]

FACTS = {
    "the guest wifi is heron-guest": "fact",
    "Dana prefers tea over coffee": "preference",
    "we keep PostgreSQL for billing": "decision",
}


LAST_MOMENT = datetime.max.replace(tzinfo=timezone(timedelta(hours=-5)))


@pytest.fixture
def place(tmp_path):
    return tmp_path / "lance"


@pytest.fixture
def memory(place):
    with LanceMemory.open(place, embedder=HashingEmbedder()) as opened:
        yield opened


@pytest.fixture
def plane(place):
    """A memory of hand-made vectors with two dimensions."""
    with LanceMemory.open(place) as opened:
        for text, vector in {"here": [0, 0], "near": [1, 0], "far": [3, 4]}.items():
            opened.add(text, vector=vector)
        yield opened


def test_an_entry_comes_back_as_it_was_added(memory, place):
    added = memory.add("we keep PostgreSQL for billing", importance=8, category="decision")
    with LanceMemory.open(place, embedder=HashingEmbedder()) as again:
        entry = again.get(added.id)
    assert entry == added
    assert isinstance(entry, LanceEntry)
    assert (entry.importance, entry.category) == (8, "decision")
    assert len(entry.vector) == 384
    assert datetime.now(UTC) - entry.created_at < timedelta(minutes=1)
    assert entry.created_at.tzinfo is UTC


def test_what_is_left_out_has_a_default(memory):
    entry = memory.add("a thing")
    assert (entry.importance, entry.category) == (5, "other")


def test_the_distance_is_the_square_of_the_euclidean_one(plane):
    hits = plane.search([0, 0], min_score=0)
    assert [(hit.entry.text, hit.distance) for hit in hits] == [("here", 0), ("near", 1), ("far", 25)]
    assert [hit.score for hit in hits] == [1, 0.5, pytest.approx(1 / 26)]


def test_hits_below_the_score_are_left_out_and_one_that_reaches_it_is_kept(plane):
    assert [hit.entry.text for hit in plane.search([0, 0])] == ["here", "near"]
    assert [hit.entry.text for hit in plane.search([0, 0], 1)] == ["here"]
    assert plane.search([100, 100]) == []


def test_five_hits_unless_more_are_asked_for(place):
    with LanceMemory.open(place) as memory:
        for number in range(8):
            memory.add(f"entry {number}", vector=[number / 100, 0])
        assert [hit.entry.text for hit in memory.search([0, 0])] == [f"entry {number}" for number in range(5)]
        assert len(memory.search([0, 0], limit=100)) == 8


def test_a_text_is_embedded_and_finds_its_entry(memory):
    for text, category in FACTS.items():
        memory.add(text, category=category)
    assert [hit.entry.text for hit in memory.search("guest wifi heron-guest")] == ["the guest wifi is heron-guest"]
    for hit in memory.search("billing with PostgreSQL", min_score=0):
        assert hit.distance == pytest.approx(2 - 2 * cosine(memory, hit), abs=1e-5)


def cosine(memory, hit):
    query = HashingEmbedder().embed_query("billing with PostgreSQL")
    return float(sum(a * b for a, b in zip(query.tolist(), hit.entry.vector, strict=True)))


def test_a_category_is_a_filter_before_the_limit(memory):
    for text, category in FACTS.items():
        memory.add(text, category=category)
    hits = memory.search("guest wifi", limit=1, min_score=0, category="decision")
    assert [hit.entry.category for hit in hits] == ["decision"]
    assert memory.search("guest wifi", min_score=0, category="entity") == []


def test_the_configured_embedder_is_used_by_default(place):
    with LanceMemory.open(place, settings=Settings(provider="hashing")) as memory:
        memory.add("the guest wifi is heron-guest")
        assert memory.search("the guest wifi")
    with LanceMemory.open(place, settings=Settings(provider="none")) as memory:
        with pytest.raises(EmbedderUnavailableError, match=r"no embedding provider.*provider is none"):
            memory.search("the guest wifi")
        assert memory.search([1.0] + [0.0] * 383, min_score=0)


def test_the_settings_of_the_user_are_read(place, monkeypatch):
    monkeypatch.setenv("NOTEWELL_PROVIDER", "hashing")
    with LanceMemory.open(place) as memory:
        assert len(memory.add("a thing").vector) == 384


def test_deleting_says_whether_there_was_an_entry(memory):
    entry = memory.add("a thing")
    assert memory.delete(entry.id)
    assert not memory.delete(entry.id)
    assert memory.get(entry.id) is None
    assert memory.count() == 0


def test_an_empty_memory_answers(memory):
    assert memory.search("anything") == []
    assert memory.get("x") is None
    assert not memory.delete("x")
    assert memory.count() == 0
    memory.compact()


@pytest.mark.parametrize("name", ["it's", "' OR 1=1 --", "a\\'b", 'say "hi"', "名前", "%", "id"])
def test_an_id_may_hold_any_character(memory, name):
    memory.add("other")
    memory.add("mine", id=name)
    assert memory.get(name).text == "mine"
    assert memory.delete(name)
    assert memory.count() == 1


@pytest.mark.parametrize("text", ["line one\nline two", "🦆 " * 5_000, "x\0y", "half \ud800 pair", "'; drop table"])
def test_any_text_is_kept(memory, text):
    entry = memory.add(text)
    assert memory.get(entry.id) == entry
    assert entry.text == text.replace("\ud800", "?")


def test_a_secret_is_not_stored(memory, place):
    secret = "sk-ant-api03-" + "aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5bC7d" * 2
    entry = memory.add(f"the key is {secret}")
    assert secret not in entry.text
    assert not containing(place, secret)


# --- bad input ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        pytest.param({"vector": [1, 2, 3]}, BadVectorError, "3 dimensions, those of .* have 2", id="too long"),
        pytest.param({"vector": [float("nan"), 0]}, BadVectorError, "NaN or infinity", id="NaN"),
        pytest.param({"vector": [1e300, 0]}, BadVectorError, "NaN or infinity", id="beyond single precision"),
        pytest.param({"vector": ["a", "b"]}, BadVectorError, "not a row of numbers", id="words"),
        pytest.param({"vector": [[1, 2]]}, BadVectorError, "shape", id="a matrix"),
        pytest.param({"vector": []}, BadVectorError, "shape", id="empty vector"),
        pytest.param({"category": "idea"}, RememberError, "no category 'idea'", id="unknown category"),
        pytest.param({"category": None}, RememberError, "no category None", id="no category"),
        pytest.param({"importance": 0}, RememberError, "1 to 10, got 0", id="importance 0"),
        pytest.param({"importance": 11}, RememberError, "1 to 10, got 11", id="importance 11"),
        pytest.param({"importance": 2.5}, RememberError, "1 to 10, got 2.5", id="half an importance"),
        pytest.param({"importance": True}, RememberError, "1 to 10, got True", id="a truth value"),
        pytest.param({"text": "  "}, RememberError, "the text is empty", id="blank text"),
        pytest.param({"id": " "}, RememberError, "id of an entry is empty", id="blank id"),
        pytest.param({"id": "taken"}, RememberError, "there is an entry 'taken' already", id="an id twice"),
        pytest.param({"created_at": "2026-11-01"}, RememberError, "time zone", id="a time that is text"),
        pytest.param({"created_at": LAST_MOMENT}, RememberError, "beyond the last year", id="a time after the last"),
        pytest.param({"created_at": datetime(2026, 11, 1)}, RememberError, "time zone", id="a time without zone"),  # noqa: DTZ001
    ],
)
def test_a_bad_entry_is_refused_and_nothing_changes(plane, options, error, message):
    plane.add("the first", id="taken", vector=[7, 7])
    with pytest.raises(error, match=message) as raised:
        plane.add(**{"text": "x", "vector": [1, 1]} | options)
    assert raised.value.hint
    assert plane.count() == 4
    assert plane.get("taken").text == "the first"


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"query": [1, 2, 3]}, BadVectorError),
        ({"query": [float("nan"), 0]}, BadVectorError),
        ({"query": " "}, QueryError),
        ({"query": [0, 0], "limit": 0}, QueryError),
        ({"query": [0, 0], "min_score": 1.5}, QueryError),
        ({"query": [0, 0], "min_score": float("nan")}, QueryError),
        ({"query": [0, 0], "category": "idea"}, QueryError),
        ({"query": None}, BadVectorError),
        ({"query": [0, 0], "limit": None}, QueryError),
        ({"query": [0, 0], "min_score": "0"}, QueryError),
    ],
)
def test_a_bad_search_is_refused(plane, arguments, error):
    with pytest.raises(error):
        plane.search(**arguments)


@pytest.mark.parametrize("wrong", [None, 7, b"x", ["a"]])
def test_a_wrong_argument_is_an_error_that_says_what_is_expected(plane, wrong):
    for call, named in ((plane.get, "id"), (plane.delete, "id"), (LanceMemory.open, "uri")):
        with pytest.raises(QueryError, match=f"{named} must be text"):
            call(wrong)
    for keep in (wrong, timedelta(-1)):
        with pytest.raises(QueryError, match="keep_versions"):
            plane.compact(keep_versions=keep)
    assert plane.count() == 3


def test_a_limit_beyond_every_number_of_entries_finds_them_all(plane):
    assert len(plane.search([0, 0], 10**30, 0)) == 3


def test_texts_of_another_model_are_not_compared(memory, place):
    memory.add("a thing")
    with LanceMemory.open(place, embedder=HashingEmbedder(64)) as other:
        for call in (other.add, other.search):
            with pytest.raises(IndexMismatchError, match="hashing"):
                call("a thing")
        assert other.count() == 1


def test_a_foreign_table_is_left_alone(place):
    from lancedb import connect  # a second and more, for the process that runs this

    rows = [{"vector": [1.0, 2.0], "item": "not ours"}]
    connect(place).create_table("memories", rows)
    with pytest.raises(StoreError, match="was not made by notewell; its columns are vector, item") as raised:
        LanceMemory.open(place)
    assert "table=" in raised.value.hint
    assert connect(place).open_table("memories").to_arrow().to_pylist() == rows
    with LanceMemory.open(place, table="notewell") as memory:
        memory.add("ours", vector=[1, 2])
        assert memory.count() == 1


def test_a_folder_that_is_a_file_is_named_and_kept(place):
    place.write_text("precious")
    with pytest.raises(StoreError, match=r"LanceDB cannot use .*lance: .*File exists") as raised:
        LanceMemory.open(place)
    assert "folder" in raised.value.hint
    assert place.read_text() == "precious"


def test_a_corrupt_table_is_an_error_not_an_empty_answer(plane, place):
    plane.close()
    for file in place.rglob("*.lance"):
        if file.is_file():
            file.write_bytes(b"nonsense")
    with LanceMemory.open(place) as memory, pytest.raises(StoreError, match="LanceDB cannot use"):
        memory.search([0, 0])


def test_without_the_extra_the_error_says_what_to_install(place, monkeypatch):
    monkeypatch.setitem(sys.modules, "lancedb", None)
    with pytest.raises(StoreError, match="missing: lancedb") as raised:
        LanceMemory.open(place)
    assert "notewell[lancedb]" in raised.value.hint


def test_lancedb_is_imported_when_a_memory_is_opened():
    code = "import sys; from notewell import LanceMemory; print({'lancedb', 'pyarrow', 'numpy'} & set(sys.modules))"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "set()"


# --- files -------------------------------------------------------------------------------------


def containing(folder, text):
    return [file for file in folder.rglob("*") if file.is_file() and text.encode() in file.read_bytes()]


def test_compacting_erases_deleted_entries(memory, place):
    kept = [memory.add(f"entry {number}") for number in range(20)]
    memory.compact()
    gone = memory.add("the unspeakable quagga")
    memory.compact()
    assert containing(place, "quagga")
    memory.delete(gone.id)
    memory.compact(keep_versions=timedelta(0))
    assert not containing(place, "quagga")
    assert [memory.get(entry.id) for entry in kept] == kept


def test_many_small_writes_stay_in_few_files(place):
    with LanceMemory.open(place) as memory:
        for number in range(200):
            memory.add(f"entry {number}", vector=[number, 0])
        assert memory.count() == 200
        files = memory._open_table().stats()["fragment_stats"]["num_fragments"]
    assert files < 70


WRITER = """
import contextlib, sys
from notewell import LanceMemory, RememberError
from notewell.embedding.hashing import HashingEmbedder
with LanceMemory.open(sys.argv[1], embedder=HashingEmbedder()) as memory:
    for number in range(25):
        entry = memory.add(f"entry {number} of {sys.argv[2]}")
        if number % 5 == 0:
            assert memory.delete(entry.id)
        memory.search("entry", min_score=0)
        with contextlib.suppress(RememberError):
            memory.add("wanted by all", id=f"shared {number}")
"""


def test_four_processes_write_at_once_and_nothing_is_lost(memory, place):
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, str(place), str(name)]) for name in range(4)]
    assert [writer.wait(timeout=120) for writer in writers] == [0, 0, 0, 0]
    texts = [hit.entry.text for hit in memory.search("entry", limit=1000, min_score=0)]
    own = [f"entry {number} of {name}" for number in range(25) if number % 5 for name in range(4)]
    assert sorted(texts) == sorted([*own, *["wanted by all"] * 25])  # each id once


def test_a_table_that_another_process_is_creating_is_waited_for(memory, place):
    """Its folder is there before the table is; here the other process gives up."""
    folder = place / "memories.lance"
    folder.mkdir(parents=True)
    done = threading.Timer(0.3, folder.rmdir)
    done.start()
    assert memory.search("anything") == []
    done.join()


# --- S3 ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def s3():
    """The address of an S3 server of its own process, with one bucket."""
    pytest.importorskip("moto", reason="no S3 server: pip install 'moto[server,s3]'")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    address = f"http://127.0.0.1:{port}"
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 60
        while True:
            try:
                make = urllib.request.Request(f"{address}/bucket", method="PUT")
                urllib.request.urlopen(make, timeout=5).close()
                break
            except (urllib.error.URLError, ConnectionError):
                assert time.monotonic() < deadline
                assert server.poll() is None
                time.sleep(0.1)
        yield address
    finally:
        server.terminate()
        server.wait()


def options(endpoint):
    return {
        "aws_access_key_id": "user",
        "aws_secret_access_key": "not-to-be-shown",
        "region": "us-east-1",
        "endpoint": endpoint,
        "allow_http": "true",
    }


def test_the_same_works_in_s3(s3):
    with LanceMemory.open("s3://bucket/memory", embedder=HashingEmbedder(), storage_options=options(s3)) as memory:
        added = {text: memory.add(text, category=category) for text, category in FACTS.items()}
        memory.delete(added["Dana prefers tea over coffee"].id)
        memory.compact()
    with LanceMemory.open("s3://bucket/memory", embedder=HashingEmbedder(), storage_options=options(s3)) as memory:
        assert memory.count() == 2
        assert [hit.entry for hit in memory.search("guest wifi heron-guest")] == [
            added["the guest wifi is heron-guest"]
        ]
        assert memory.get(added["Dana prefers tea over coffee"].id) is None


@pytest.mark.parametrize(
    ("uri", "endpoint", "message"),
    [
        pytest.param("s3://nowhere/memory", None, "bucket does not exist", id="no such bucket"),
        pytest.param(
            "s3://bucket/memory",
            "http://127.0.0.1:9",
            r"Connection refused \(http://127.0.0.1:9/bucket\)",
            id="nobody listens",
        ),
    ],
)
def test_a_bucket_that_cannot_be_used_is_named_without_its_keys(s3, uri, endpoint, message):
    with pytest.raises(StoreError, match=message) as raised:
        LanceMemory.open(uri, storage_options=options(endpoint or s3)).add("x", vector=[1, 2])
    assert "not-to-be-shown" not in str(raised.value)
    assert "source:" not in str(raised.value)
