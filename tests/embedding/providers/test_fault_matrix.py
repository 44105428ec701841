"""Every fault of every provider, through a real memory: an index that is complete or unchanged, and bounded calls."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from notewell.embedding.http_calls import RetryPolicy
from tests.fakes.providers import INDEX_FAULTS, PROVIDERS, STATUS_FAULTS, VECTOR_FAULTS, WIRE_FAULTS

from .opening import open_memory

pytestmark = pytest.mark.slow

stamina = pytest.importorskip("stamina", reason="the extra `remote` is not installed")
DEFAULT = RetryPolicy()
NOTES = {
    f"memory/n{number}.md": f"# Shed {number}\n\nThe harbour keeps subject{number} there.\n" for number in range(5)
}
FAULTS = (*STATUS_FAULTS, *WIRE_FAULTS, *VECTOR_FAULTS, *INDEX_FAULTS)
CASES = [
    pytest.param(name, fault, id=f"{name}, {fault}")
    for name, fake in PROVIDERS.items()
    for fault in FAULTS
    if fault not in INDEX_FAULTS or fake.numbered
]

# What happens when a fault shows once: calls that an index run makes; it is complete in the end, unless it says why.
ONCE = {
    "unauthorized": (1, "key"),
    "quota": (1, "quota"),
    "wrong_dimensions": (1, "dimensions"),
    "bad_request": (4, ""),  # refused, a harmless text, two halves
    "shuffled": (1, ""),
}
# And when it shows always.
ALWAYS = {
    "rate_limited": (3, "too many requests"),
    "quota": (1, "quota"),
    "unauthorized": (1, "API key"),
    "bad_request": (2, "refused the request"),
    "500": (3, "failed (500)"),
    "503": (3, "failed (503)"),
    "hang": (3, "did not respond within"),
    "hang_mid_body": (3, "did not respond within"),
    "reset": (3, "closed the connection early"),
    "truncated_json": (3, "not JSON"),
    "html_200": (3, "not JSON"),
    "empty": (3, "0 vectors for 5 texts"),
    "wrong_count": (3, "4 vectors for 5 texts"),
    "wrong_dimensions": (1, "dimensions"),
    "duplicate_index": (3, "an index is out of range or repeated"),
}
TALKATIVE = {"unauthorized", "rate_limited", "reset"}  # the rest would log the same lines, and logging takes time
HANG_TIMEOUT_S = 0.8  # for a provider that hangs; an honest answer takes some milliseconds
ONE_CHUNK = {"nan", "inf", "zero", "empty_vector"}  # the first text of a request suffers, the others do not


@pytest.fixture
def notes(tmp_path):
    folder = tmp_path / "notes"
    for path, text in NOTES.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    return folder


def faults_of(memory):
    with memory._components.index.use() as store:
        return list(store.verify())


def assert_no_key(folder: Path, key: str, *told: str) -> None:
    assert not [path for path in folder.rglob("*") if path.is_file() and key.encode() in path.read_bytes()]
    assert not [text for text in told if key in text]


def reasons(report):
    return [problem.reason for problem in report.problems]


@pytest.mark.parametrize(("name", "fault"), CASES)
def test_a_fault_that_shows_once(name, fault, notes, caplog):
    caplog.set_level(logging.DEBUG if fault in TALKATIVE else logging.INFO)
    with PROVIDERS[name]() as fake, open_memory(notes, fake, remote__index_timeout_seconds=HANG_TIMEOUT_S) as memory:
        fake.inject(fault, times=1)
        report = memory.index()
        calls, problem = ONCE.get(fault, (2, ""))
        if (name, fault) == ("openai", "bad_request"):
            calls = 2  # asked once more without base64
        assert len(fake.requests_to("embed")) == calls
        if problem:
            (told,) = reasons(report)
            assert problem in told
            assert (report.complete, report.embedded, report.pending) == (False, 0, 5)
        else:
            assert (report.complete, report.embedded, report.pending, report.problems) == (True, 5, 0, ())
        assert report.added == 5
        assert faults_of(memory) == []
        assert memory.search("subject3", sync=False).hits[0].path == "memory/n3.md"
        again = memory.index()
        assert (again.complete, again.pending, again.problems) == (True, 0, ())
        assert memory.search("subject3", sync=False).mode == "hybrid"
        assert_no_key(notes, fake.key, caplog.text, str(report))


@pytest.mark.parametrize(("name", "fault"), CASES)
def test_a_fault_that_stays(name, fault, notes, caplog):
    caplog.set_level(logging.DEBUG if fault in TALKATIVE else logging.INFO)
    with PROVIDERS[name]() as fake, open_memory(notes, fake, remote__index_timeout_seconds=HANG_TIMEOUT_S) as memory:
        fake.inject(fault, times=None)
        report = memory.index()
        calls = len(fake.requests_to("embed"))
        if fault == "shuffled":
            assert (calls, report.complete, report.embedded) == (1, True, 5)
        elif fault in ONE_CHUNK:
            assert (calls, report.complete, report.embedded, report.pending) == (2, True, 4, 1)
            (problem,) = report.problems
            assert problem.path.startswith("memory/n")
            assert "returned an invalid vector" in problem.reason
        else:
            most, told = ALWAYS[fault]
            if (name, fault) == ("openai", "bad_request"):
                most = 4  # each asked once more without base64
            (problem,) = report.problems
            assert (calls, problem.path) == (most, "embedder")
            assert told in problem.reason
            assert (report.complete, report.embedded, report.pending) == (False, 0, 5)
        assert faults_of(memory) == []
        assert memory.search("subject3", sync=False, keyword_only=True).hits[0].path == "memory/n3.md"
        fake.clear_faults()
        mended = memory.index()
        assert (mended.complete, mended.pending, mended.problems) == (True, 0, ())
        assert_no_key(notes, fake.key, caplog.text, str(report))


# Voyage and Mistral answer in the shapes of OpenAI.
@pytest.mark.parametrize(
    ("name", "fault"), [case for case in CASES if case.values[0] in {"openai", "gemini", "ollama"}]
)
def test_a_query_while_the_fault_stays(name, fault, notes, caplog):
    caplog.set_level(logging.DEBUG if fault in TALKATIVE else logging.INFO)
    with PROVIDERS[name]() as fake, open_memory(notes, fake, remote__query_timeout_seconds=HANG_TIMEOUT_S) as memory:
        memory.index()
        indexed = len(fake.requests_to("embed"))
        fake.inject(fault, times=None)
        answer = memory.search("subject3", sync=False)
        calls = len(fake.requests_to("embed")) - indexed
        if fault == "shuffled":
            assert (calls, answer.mode) == (1, "hybrid")
        else:
            assert answer.mode == "keyword"
            assert any(note.startswith("keyword search only: ") for note in answer.notes)
            assert 1 <= calls <= 3
        assert answer.hits[0].path == "memory/n3.md"
        assert_no_key(notes, fake.key, caplog.text, str(answer))


@pytest.mark.parametrize("fault", ["unauthorized", "quota", "hang"])
def test_a_provider_that_failed_a_search_is_left_alone_by_the_next(fault, notes):
    with PROVIDERS["openai"]() as fake, open_memory(notes, fake, remote__query_timeout_seconds=0.1) as memory:
        memory.index()
        indexed = len(fake.requests)
        fake.inject(fault, times=None)
        for word in ("subject1", "subject2", "subject3"):
            assert memory.search(word, sync=False).mode == "keyword"
        assert len(fake.requests) == indexed + 1
        fake.clear_faults()
        (notes / "memory/n1.md").write_text("# Shed\n\nNow a quokka.\n")
        assert memory.index().complete  # who asks for an index run wants the provider to be tried
        assert memory.search("quokka", sync=False).mode == "hybrid"


def test_a_search_keeps_its_budget_while_the_provider_hangs(notes):
    with PROVIDERS["openai"]() as fake:
        fake.inject("hang", times=None)
        with open_memory(notes, fake, sync__search_budget_ms=200, remote__query_timeout_seconds=0.1) as memory:
            answer = memory.search("subject3")  # the provider would be waited for two minutes
        assert answer.mode == "keyword"
        assert answer.hits[0].path == "memory/n3.md"


@pytest.mark.parametrize("name", sorted(PROVIDERS))
def test_unchanged_text_is_never_sent_again(name, notes):
    with PROVIDERS[name]() as fake:
        for _ in range(2):
            with open_memory(notes, fake) as memory:
                memory.index()
        with open_memory(notes, fake) as memory:
            memory.index(force=True)
        assert len(fake.requests_to("embed")) == 1


def test_texts_that_are_the_same_are_sent_once(notes):
    for number in range(5):
        (notes / f"memory/n{number}.md").write_text("# Shed\n\nThe same words.\n")
    with PROVIDERS["openai"]() as fake, open_memory(notes, fake) as memory:
        report = memory.index()
        assert (report.embedded, report.reused, report.pending) == (1, 4, 0)
        assert [len(request.json["input"]) for request in fake.requests] == [1]


def test_a_poisoned_note_is_reported_by_its_place_and_tried_again(notes):
    (notes / "memory/n2.md").write_text("# Shed\n\nThe thermonuclear shed.\n")
    with PROVIDERS["openai"]() as fake, open_memory(notes, fake) as memory:
        fake.poison("thermonuclear")
        report = memory.index()
        assert (report.complete, report.embedded, report.pending) == (True, 4, 1)
        (problem,) = report.problems
        assert problem.path == "memory/n2.md#L1"
        before = len(fake.requests)
        assert memory.index().pending == 1
        assert len(fake.requests) == before + 1
        fake.clear_faults()
        assert memory.index().pending == 0


def test_a_note_that_is_too_long_for_the_model_is_told(notes):
    (notes / "memory/long.md").write_text("# Long\n\n" + "word " * 6000 + "\n")
    with PROVIDERS["ollama"]() as fake, open_memory(notes, fake, chunking__tokens=8000) as memory:
        report = memory.index()
        assert report.pending == 0
        assert any("too long for nomic-embed-text" in note for note in report.notes)


def test_the_text_is_found_by_words_while_nothing_is_embedded(notes):
    with PROVIDERS["openai"]() as fake, open_memory(notes, fake) as memory:
        fake.inject("unauthorized", times=None)
        memory.index()
        answer = memory.search("subject3", sync=False)
        assert answer.hits[0].path == "memory/n3.md"
        assert any("nothing is embedded yet" in note for note in answer.notes)


@pytest.mark.parametrize("name", sorted(PROVIDERS))
def test_a_wait_that_is_asked_for_is_kept(name, notes):
    asked = []
    stamina.instrumentation.set_on_retry_hooks([lambda details: asked.append(DEFAULT.decide(details.caused_by))])
    try:
        with PROVIDERS[name]() as fake, open_memory(notes, fake) as memory:
            fake.inject("rate_limited", times=2, retry_after="3")
            report = memory.index()
            assert (report.complete, report.embedded, len(fake.requests_to("embed"))) == (True, 5, 3)
    finally:
        stamina.instrumentation.set_on_retry_hooks(None)
    assert asked == [3.0, 3.0]


@pytest.mark.parametrize("name", sorted(PROVIDERS))
def test_a_wait_that_is_too_long_is_left_to_the_user(name, notes):
    with PROVIDERS[name]() as fake, open_memory(notes, fake) as memory:
        fake.inject("rate_limited", times=None, retry_after="120")
        (problem,) = memory.index().problems
        assert "again in 120 s" in problem.reason
        assert len(fake.requests_to("embed")) == 1
