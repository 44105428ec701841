"""Whatever becomes of a job or of a call about it: the index is complete or says what is missing, paid for once."""

from __future__ import annotations

import logging
from contextlib import ExitStack

import pytest

from notewell import Memory
from tests.fakes.providers import FakeOpenAI

from .conftest import NOTES, Harbour, write_notes

pytestmark = pytest.mark.slow

HALF = NOTES // 2
MOST_CALLS = 60  # a run of one job that goes wrong in every way makes fewer


@pytest.fixture(autouse=True)
def no_real_waits(monkeypatch):
    """A second look comes at once."""
    monkeypatch.setattr("notewell.embedding.jobs.LOOK_AGAIN_S", 0.01)


@pytest.fixture(autouse=True)
def no_key_anywhere(request, caplog):
    """No key in a log, whatever goes wrong."""
    caplog.set_level(logging.DEBUG)
    yield
    harbour = next((value for value in request.node.funcargs.values() if isinstance(value, Harbour)), None)
    if harbour:
        assert harbour.fake.key not in caplog.text
        for path in harbour.workspace.rglob("*"):
            if path.is_file():
                assert harbour.fake.key.encode() not in path.read_bytes(), path


def told(report) -> str:
    return "\n".join([*report.notes, *(f"{problem.path}: {problem.reason}" for problem in report.problems)])


# --- what becomes of a job -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fate", "embedded_at_once", "note"),
    [
        pytest.param("batch_unknown_state", NOTES, "not done after 0 minutes", id="a state nobody knows, for ever"),
        pytest.param("batch_stuck", NOTES, "not done after 0 minutes", id="in progress for ever"),
        pytest.param("batch_partial", HALF, "3 of 6 chunks failed in a batch job", id="every other line fails"),
        pytest.param("batch_cancelled", NOTES, "a batch job of 6 chunks failed", id="cancelled"),
        pytest.param("batch_failed", NOTES, "a batch job of 6 chunks failed", id="failed"),
        pytest.param("batch_output_missing", NOTES, "its results are missing", id="no output file"),
        pytest.param("batch_output_garbled", NOTES, "none of its results can be used", id="output that is no JSON"),
        pytest.param("batch_missing_lines", HALF, "3 of 6 chunks failed", id="half of the lines are missing"),
        pytest.param("batch_strange_ids", 0, "", id="lines nobody asked for, and one twice"),
        pytest.param("batch_bad_vectors", HALF, "3 of 6 chunks failed", id="every other vector is NaN"),
        pytest.param("batch_wrong_dimensions", NOTES, "none of its results can be used", id="vectors too short"),
    ],
)
def test_the_fate_of_a_job(harbour, fate, embedded_at_once, note):
    harbour.fake.inject(fate)
    memory = harbour.open(timeout_minutes=0 if "state" in fate or "stuck" in fate else 60)
    report = memory.index(batch=True)
    assert (report.pending, report.jobs, report.complete, report.problems) == (0, 0, True, ())
    assert note in told(report)
    jobs = 2 if "state" in fate or "stuck" in fate else 1  # what times out is tried once more
    assert (harbour.jobs, harbour.texts_embedded_at_once()) == (jobs, embedded_at_once)
    assert report.embedded == NOTES
    assert len(harbour.fake.requests) < MOST_CALLS
    assert harbour.ledger == []
    harbour.check_complete(memory)


def test_a_job_that_takes_too_long_is_cancelled(harbour):
    harbour.fake.inject("batch_stuck")
    harbour.open(timeout_minutes=0).index(batch=True)
    assert [job.state for job in harbour.fake.book.jobs.values()] == ["cancelled", "cancelled"]
    assert harbour.fake.book.files == {}


def test_a_job_that_has_expired_is_tried_once_more(harbour):
    harbour.fake.inject("batch_expired")
    memory = harbour.open()
    report = memory.index(batch=True)
    assert "a batch job of 6 chunks timed out" in told(report)
    assert "it is tried once more" in told(report)
    assert (report.embedded, harbour.jobs, harbour.texts_embedded_at_once()) == (NOTES, 2, 0)
    harbour.check_complete(memory)


def test_a_job_that_expires_twice_has_failed_once(harbour):
    harbour.fake.inject("batch_expired", times=None)
    memory = harbour.open()
    report = memory.index(batch=True)
    assert "its chunks are embedded without it" in told(report)
    assert "batch jobs are off" not in told(report)
    assert (report.embedded, report.pending, harbour.jobs) == (NOTES, 0, 2)
    harbour.check_complete(memory)


def test_a_poisoned_text_costs_one_line(harbour):
    harbour.fake.poison("subject3")
    memory = harbour.open()
    report = memory.index(batch=True)
    assert (report.pending, report.embedded, harbour.jobs) == (1, NOTES - 1, 1)
    assert "1 of 6 chunks failed in a batch job" in told(report)
    assert [problem.path for problem in report.problems] == ["memory/note3.md#L1"]


def test_two_failures_turn_jobs_off_for_the_run(harbour, monkeypatch):
    monkeypatch.setattr("notewell.embedding.jobs.MAX_BYTES", 1)  # one text a job
    harbour.fake.inject("batch_failed", times=None)
    memory = harbour.open()
    report = memory.index(batch=True)
    assert (report.pending, report.embedded, harbour.jobs) == (0, NOTES, 2)
    assert "batch jobs are off for this run" in told(report)
    harbour.check_complete(memory)
    harbour.fake.clear_faults()
    write_notes(harbour.workspace, NOTES + 1)
    memory.index(batch=True)
    assert harbour.jobs == 3  # the next run tries again


def test_one_failure_does_not(harbour, monkeypatch):
    monkeypatch.setattr("notewell.embedding.jobs.MAX_BYTES", 1)
    harbour.fake.inject("batch_failed")
    memory = harbour.open()
    report = memory.index(batch=True)
    assert (report.embedded, harbour.jobs, harbour.texts_embedded_at_once()) == (NOTES, NOTES, 1)
    harbour.check_complete(memory)


def test_a_job_that_the_provider_has_lost_is_made_up_for(harbour):
    memory = harbour.open()
    memory.index(batch=True, wait=False)
    harbour.fake.book.jobs.clear()
    report = memory.index()
    assert "no longer knows it" in told(report)
    harbour.check_complete(memory)


# --- what becomes of a call ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("route", "fault"),
    [
        ("upload", "503"),
        ("create", "rate_limited"),
        ("create", "503"),
        ("poll", "503"),
        ("download", "rate_limited"),
    ],
)
def test_a_failure_that_passes_is_got_over(harbour, route, fault):
    harbour.fake.inject(fault, route=route, retry_after="0")
    memory = harbour.open()
    report = memory.index(batch=True)
    assert report.pending == 0
    # A server that fails while it makes a job may or may not have made it: it is looked for, and not made twice.
    unclear = route == "create" and fault != "rate_limited"
    assert (harbour.jobs, harbour.texts_embedded_at_once()) == ((0, NOTES) if unclear else (1, 0))
    harbour.check_complete(memory)


@pytest.mark.parametrize("fault", ["hang", "reset", "truncated_json"])
def test_a_job_whose_making_was_not_seen_to_end_is_found_and_not_paid_twice(harbour, fault, monkeypatch):
    if fault == "hang":  # long enough for every other call of a loaded machine
        monkeypatch.setattr("notewell.embedding.job_apis.REQUEST_TIMEOUT_S", 3.0)
    harbour.fake.inject(fault, route="create")
    memory = harbour.open()
    report = memory.index(batch=True)
    assert (report.pending, report.complete) == (0, True)
    assert (harbour.jobs, harbour.texts_embedded_at_once()) == (1, 0)
    assert harbour.fake.requests_to("list")
    harbour.check_complete(memory)


@pytest.mark.parametrize("fault", ["unauthorized", "quota", "bad_request"])
def test_a_job_that_is_refused_leaves_the_ordinary_way(harbour, fault):
    harbour.fake.inject(fault, route="create")
    memory = harbour.open()
    report = memory.index(batch=True)
    assert len(harbour.fake.requests_to("create")) == 1
    assert "could not be created" in told(report)
    assert (harbour.jobs, harbour.ledger) == (0, [])
    harbour.check_complete(memory)
    assert harbour.fake.book.files == {}


@pytest.mark.parametrize(("route", "fault"), [("poll", "unauthorized"), ("poll", "500"), ("download", "500")])
def test_a_job_that_cannot_be_asked_after_is_kept_for_a_later_run(harbour, route, fault):
    harbour.fake.inject(fault, times=None, route=route, retry_after="0")
    memory = harbour.open()
    report = memory.index(batch=True)
    assert (report.jobs, report.pending, report.complete) == (1, NOTES, False)
    assert [problem.path for problem in report.problems] == ["batch job"]
    assert len(harbour.fake.requests) < MOST_CALLS
    assert harbour.texts_embedded_at_once() == 0  # it is paid for: nobody pays again
    harbour.fake.clear_faults()
    memory.index(wait=True)
    assert (harbour.jobs, harbour.texts_embedded_at_once()) == (1, 0)
    harbour.check_complete(memory)


def test_a_server_without_jobs_embeds_the_ordinary_way(tmp_path):
    class Plain(FakeOpenAI):
        """An OpenAI-compatible server that knows embeddings only."""

        def route_of(self, request):
            return "embed" if request.path.endswith("/embeddings") else ""

    with Plain() as fake, ExitStack() as memories:
        harbour = Harbour(fake, write_notes(tmp_path / "notes"), memories)
        memory = harbour.open()
        report = memory.index(batch=True)
        assert "batch jobs are off for this run" in told(report)
        assert len(fake.requests) == 2  # one try to upload, one request for all the vectors
        harbour.check_complete(memory)


def test_nobody_there_is_one_problem_and_the_text_is_indexed(harbour):
    settings = harbour.settings()
    harbour.fake.__exit__(None, None, None)
    with Memory(harbour.workspace, settings) as memory:
        report = memory.index(batch=True)
        assert (report.added, report.pending, report.complete) == (NOTES, NOTES, False)
        assert [problem.path for problem in report.problems] == ["embedder"]
        assert memory.search("subject3").hits[0].path == "memory/note3.md"
    assert harbour.ledger == []
