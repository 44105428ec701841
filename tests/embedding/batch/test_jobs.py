"""Batch jobs from end to end: made, waited for or left, collected, paid for once."""

from __future__ import annotations

import json
import threading
from dataclasses import replace

import pytest

from notewell import Memory
from notewell.embedding.jobs import SHORT_HASH, Ledger
from notewell.indexing.plan import Deadline, SyncPolicy
from notewell.settings import RemoteSettings, Settings
from notewell.types import hash_text
from tests.fakes.providers import FakeOllama

from .conftest import NOTES, write_notes

pytestmark = pytest.mark.slow


def test_a_run_that_waits_has_every_vector_and_embeds_nothing_the_ordinary_way(harbour):
    memory = harbour.open()
    report = memory.index(batch=True)
    assert (report.embedded, report.pending, report.jobs, report.complete) == (NOTES, 0, 0, True)
    assert (report.problems, report.notes) == ((), ())
    assert (harbour.jobs, harbour.texts_embedded_at_once()) == (1, 0)
    harbour.check_complete(memory)
    assert harbour.ledger == []
    assert harbour.fake.book.files == {}  # no text stays with the provider
    assert memory.search("harbour subject3").mode == "hybrid"


def test_a_run_that_does_not_wait_leaves_the_chunks_to_a_later_one(harbour):
    memory = harbour.open()
    harbour.fake.hold_jobs = True
    report = memory.index(batch=True, wait=False)
    assert (report.embedded, report.pending, report.jobs, report.complete) == (0, NOTES, 1, True)
    assert any(f"1 batch job is in progress for {NOTES} chunks" in note for note in report.notes)
    (job,) = memory.status().jobs
    assert (job.provider, job.chunks, job.id) == (harbour.fake.name, NOTES, next(iter(harbour.fake.book.jobs)))
    memory.close()

    again = harbour.open()
    assert again.index().jobs == 1  # still at work: an ordinary run pays for none of it again
    harbour.fake.hold_jobs = False
    harbour.fake.polls_until_done = 0
    report = again.index()
    assert (report.embedded, report.pending, report.jobs) == (NOTES, 0, 0)
    assert (harbour.jobs, harbour.texts_embedded_at_once()) == (1, 0)
    harbour.check_complete(again)
    assert again.status().jobs == ()


def test_a_search_leaves_alone_what_a_job_has(harbour):
    memory = harbour.open(on_search=True)
    harbour.fake.hold_jobs = True
    memory.index(batch=True, wait=False)
    (harbour.workspace / "memory" / "late.md").write_text("# Late\n\nA note that no job has.\n", encoding="utf-8")
    memory.search("harbour subject3")
    memory.search("harbour subject4")
    embedded = [request.body.decode() for request in harbour.fake.requests_to("embed")]
    assert any("A note that no job has" in body for body in embedded)
    assert not any("in shed" in body for body in embedded)


def test_without_a_cache_the_vectors_reach_the_index_all_the_same(harbour):
    memory = harbour.open(cache=False)
    memory.index(batch=True)
    harbour.check_complete(memory)


def test_text_that_was_embedded_before_is_in_no_job(harbour):
    harbour.open().index(batch=True)
    write_notes(harbour.workspace, NOTES + 2)
    memory = harbour.open()
    report = memory.index(batch=True)
    assert report.embedded == 2
    assert [len(job.lines) for job in harbour.fake.book.jobs.values()] == [NOTES, 2]
    assert memory.index(batch=True, force=True).embedded == 0
    assert harbour.jobs == 2
    harbour.check_complete(memory, NOTES + 2)


def test_the_same_text_twice_is_paid_for_once(harbour):
    same = (harbour.workspace / "memory" / "note0.md").read_text(encoding="utf-8")
    (harbour.workspace / "memory" / "copy.md").write_text(same, encoding="utf-8")
    memory = harbour.open()
    memory.index(batch=True)
    (job,) = harbour.fake.book.jobs.values()
    assert len(job.lines) == NOTES
    harbour.check_complete(memory, NOTES + 1)


def test_few_chunks_are_not_worth_a_job_unless_it_is_asked_for_by_name(openai_harbour):
    memory = openai_harbour.open(enabled=True)
    assert memory.index().embedded == NOTES
    assert (openai_harbour.jobs, openai_harbour.texts_embedded_at_once()) == (0, NOTES)


def test_settings_alone_use_jobs_for_large_amounts(openai_harbour):
    write_notes(openai_harbour.workspace, 120)
    memory = openai_harbour.open(enabled=True)
    assert memory.index().embedded == 120
    assert (openai_harbour.jobs, openai_harbour.texts_embedded_at_once()) == (1, 0)


def test_no_batch_goes_before_the_settings(openai_harbour):
    write_notes(openai_harbour.workspace, 120)
    openai_harbour.open(enabled=True).index(batch=False)
    assert openai_harbour.jobs == 0


def test_no_more_jobs_at_once_than_the_settings_allow(openai_harbour, monkeypatch):
    """Six jobs' worth of text, two at once: the next is made when one is done."""
    monkeypatch.setattr("notewell.embedding.jobs.MAX_BYTES", 20_000)  # two texts of 1,536 numbers
    write_notes(openai_harbour.workspace, 12)
    fake, most = openai_harbour.fake, 0

    def watch(moment, route):
        nonlocal most
        if (moment, route) == ("after", "create"):
            most = max(most, sum(job.state == "running" for job in fake.book.jobs.values()))

    fake.on_request = watch
    memory = openai_harbour.open()
    report = memory.index(batch=True)
    assert (report.embedded, openai_harbour.jobs, most) == (12, 6, 2)
    assert openai_harbour.texts_embedded_at_once() == 0
    openai_harbour.check_complete(memory, 12)


def test_the_next_jobs_wait_for_a_later_run_when_nobody_waits(openai_harbour, monkeypatch):
    monkeypatch.setattr("notewell.embedding.jobs.MAX_BYTES", 20_000)
    write_notes(openai_harbour.workspace, 12)
    memory = openai_harbour.open()
    openai_harbour.fake.polls_until_done = 0
    left = [memory.index(batch=True, wait=False).pending for _ in range(4)]
    assert left == [12, 8, 4, 0]
    assert (openai_harbour.jobs, openai_harbour.texts_embedded_at_once()) == (6, 0)
    openai_harbour.check_complete(memory, 12)


def test_the_pause_between_looks_grows(openai_harbour):
    openai_harbour.fake.polls_until_done = 6
    pauses = []

    class Patient(threading.Event):
        def wait(self, timeout=None):
            pauses.append(timeout)
            return super().wait(0)

    memory = openai_harbour.open(poll_interval_ms=2000)
    report = memory._components.sync.run(SyncPolicy(batch=True, deadline=Deadline(stop=Patient())))
    assert report.embedded == NOTES
    assert sum(pauses) == pytest.approx(2.0 + 2.0 + 3.0 + 4.5 + 6.75 + 10.125 + 15.1875, abs=1.0)
    assert max(pauses) <= 1.0  # in pieces, so that Ctrl-C is seen everywhere


def test_waiting_ends_when_it_is_told_to(openai_harbour):
    openai_harbour.fake.hold_jobs = True
    memory = openai_harbour.open()
    stop = threading.Event()
    looks = iter(range(3))

    def watch(moment, route):
        if (moment, route) == ("after", "poll") and next(looks, None) is None:
            stop.set()

    openai_harbour.fake.on_request = watch
    report = memory._components.sync.run(SyncPolicy(batch=True, deadline=Deadline(stop=stop)))
    assert (report.jobs, report.pending) == (1, NOTES)


def test_a_text_too_long_for_the_model_is_embedded_in_pieces_beside_the_job(openai_harbour):
    """Long lines are one chunk when chunks may be that long."""
    long = "harbour " * 9000
    (openai_harbour.workspace / "memory" / "long.md").write_text(long + "\n", encoding="utf-8")
    settings = openai_harbour.settings()
    settings = replace(settings, chunking=replace(settings.chunking, tokens=20_000, overlap=0))
    with Memory(openai_harbour.workspace, settings) as memory:
        report = memory.index(batch=True)
    assert (report.pending, report.embedded) == (0, NOTES + 1)
    (job,) = openai_harbour.fake.book.jobs.values()
    assert len(job.lines) == NOTES
    assert len(openai_harbour.fake.requests_to("embed")) == 1


def test_lines_carry_the_hash_of_their_text(harbour):
    harbour.open().index(batch=True)
    (job,) = harbour.fake.book.jobs.values()
    field = "key" if harbour.fake.name == "gemini" else "custom_id"
    for line in job.lines:
        body = line["request"]["content"]["parts"][0]["text"] if field == "key" else line["body"]["input"][0]
        assert line[field] == hash_text(body)[:SHORT_HASH]


def test_a_provider_without_jobs_embeds_the_ordinary_way_and_says_so(tmp_path):
    workspace = write_notes(tmp_path / "notes")
    with FakeOllama() as fake:
        settings = Settings(provider="ollama", remote=RemoteSettings(base_url=fake.base_url))
        with Memory(workspace, settings) as memory:
            report = memory.index(batch=True)
    assert (report.embedded, report.pending) == (NOTES, 0)
    assert any("only OpenAI, Gemini, Voyage and Mistral offer batch jobs" in note for note in report.notes)


def test_a_new_model_answers_only_when_its_jobs_are_done(openai_harbour):
    """The vectors of the old model stay in use while a job makes those of the new one."""
    openai_harbour.open().index()
    settings = replace(openai_harbour.settings(), model="text-embedding-3-large")
    openai_harbour.fake.hold_jobs = True
    with Memory(openai_harbour.workspace, settings) as memory:
        report = memory.index(batch=True, wait=False)
        assert (report.jobs, report.rebuilt, report.complete) == (1, False, True)
        answer = memory.search("harbour subject3")
        assert answer.mode == "hybrid"
        assert any("text-embedding-3-small" in note for note in answer.notes)
        openai_harbour.fake.hold_jobs = False
        openai_harbour.fake.polls_until_done = 0
        report = memory.index()
        assert (report.jobs, report.rebuilt, report.pending) == (0, True, 0)
        assert memory.status().index_embedder == memory.status().embedder
    assert openai_harbour.jobs == 1


def test_a_job_of_another_model_waits_for_its_model_to_return(openai_harbour):
    openai_harbour.fake.hold_jobs = True
    openai_harbour.open().index(batch=True, wait=False)
    other = replace(openai_harbour.settings(), model="text-embedding-3-large")
    with Memory(openai_harbour.workspace, other) as memory:
        assert memory.index().embedded == NOTES
    openai_harbour.fake.hold_jobs = False
    openai_harbour.fake.polls_until_done = 0
    memory = openai_harbour.open()
    memory.index()
    assert openai_harbour.jobs == 1
    openai_harbour.check_complete(memory)


# --- forgetting ----------------------------------------------------------------------------------


def test_a_forgotten_text_gets_no_vector_from_a_job(harbour):
    memory = harbour.open()
    harbour.fake.hold_jobs = True
    memory.index(batch=True, wait=False)
    (record,) = harbour.ledger
    with memory._components.index.use() as store:
        forgotten = next(chunk.embedded_hash for chunk in store.pending(NOTES) if "subject2" in chunk.embedded_text)
    assert Ledger(memory._components.folder.path).forget([forgotten, "0" * 64]) == 1
    assert Ledger(memory._components.folder.path).forget([forgotten]) == 0
    (harbour.workspace / "memory" / "note2.md").unlink()
    harbour.fake.hold_jobs = False
    harbour.fake.polls_until_done = 0
    memory.index()
    kept = memory.cache.get_many(memory._components.embedders.selection.embedder.identity, record.hashes)
    assert set(kept) == set(record.hashes) - {forgotten}
    assert harbour.texts_embedded_at_once() == 0
    harbour.check_complete(memory, NOTES - 1)


def test_a_job_of_which_nothing_is_wanted_is_cancelled(harbour):
    memory = harbour.open()
    harbour.fake.hold_jobs = True
    memory.index(batch=True, wait=False)
    (record,) = harbour.ledger
    for note in (harbour.workspace / "memory").iterdir():
        note.unlink()
    Ledger(memory._components.folder.path).forget(record.hashes)
    memory.index()
    (job,) = harbour.fake.book.jobs.values()
    assert job.state == "cancelled"
    assert (harbour.ledger, harbour.fake.book.files) == ([], {})


# --- the ledger ----------------------------------------------------------------------------------


def test_a_corrupt_record_is_told_by_doctor(openai_harbour):
    memory = openai_harbour.open()
    openai_harbour.fake.hold_jobs = True
    memory.index(batch=True, wait=False)
    folder = memory._components.folder.path / "batch-jobs"
    (folder / "0123.json").write_text('{"mark": ', encoding="utf-8")
    checks = {(check.name, check.ok) for check in memory.doctor()}
    assert {("jobs", True), ("jobs", False)} <= checks
    assert len(Ledger(memory._components.folder.path).records()) == 1


def test_what_a_killed_process_left_of_a_record_is_taken_away(openai_harbour):
    memory = openai_harbour.open()
    folder = memory._components.folder.path / "batch-jobs"
    folder.mkdir(parents=True)
    (folder / "0123.77.tmp").write_text('{"mark": ', encoding="utf-8")
    memory.index()
    assert not folder.exists()


def test_the_ledger_holds_neither_text_nor_key(harbour):
    memory = harbour.open()
    harbour.fake.hold_jobs = True
    memory.index(batch=True, wait=False)
    (path,) = (memory._components.folder.path / "batch-jobs").iterdir()
    content = path.read_text(encoding="utf-8")
    assert json.loads(content)["job_id"]
    assert "subject" not in content
    assert harbour.fake.key not in content
