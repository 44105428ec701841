"""Another embedder, and a fallback: vectors of two spaces are never mixed, and it is said which ones answer."""

from __future__ import annotations

import pytest

from notewell import Memory
from tests.fakes.providers import FakeGemini, FakeOpenAI

from .opening import open_memory

pytestmark = pytest.mark.slow


@pytest.fixture
def many_notes(tmp_path):
    folder = tmp_path / "many"
    (folder / "memory").mkdir(parents=True)
    for number in range(60):
        text = f"# Note {number}\n\nThe harbour keeps subject{number} in shed {number}. " + "words " * 600
        (folder / f"memory/n{number}.md").write_text(text + "\n")
    return folder


def notes_of(answer):
    return " ".join(answer.notes)


# --- another model -------------------------------------------------------------------------------


def test_a_new_provider_that_fails_half_way_leaves_the_old_vectors_in_use(many_notes):
    with FakeOpenAI() as fake:
        with open_memory(many_notes, fake) as memory:
            memory.index()
            old = memory._components.embedders.selection.embedder.identity
        done = len(fake.requests_to("embed"))
        with open_memory(many_notes, fake, model="text-embedding-3-large") as memory:
            fake.latency = 0.01

            def break_it(progress):
                if progress.stage == "embed":
                    fake.inject("unauthorized", times=None)

            report = memory.index(progress=break_it)
            assert (report.complete, report.rebuilt) == (False, False)
            assert any(f"the vectors of {old} stay in use" in note for note in report.notes)
            assert 0 < report.embedded < 120
            fake.clear_faults()
            answer = memory.search("subject42", sync=False)
            assert answer.mode == "hybrid"
            assert answer.hits[0].path == "memory/n42.md"
            assert f"answered with the vectors of {old}" in notes_of(answer)
            status = memory.status()
            assert status.index_embedder == str(old)
            assert any("they answer until the vectors of" in note for note in status.notes)
            check = next(check for check in memory.doctor() if check.name == "vectors")
            assert not check.ok
            assert str(old) in check.detail
            embedded_before = len(fake.requests_to("embed"))
            finished = memory.index()
            assert (finished.complete, finished.rebuilt, finished.pending) == (True, True, 0)
            assert report.embedded + finished.embedded == memory.status().chunks  # nothing was paid for twice
            assert len(fake.requests_to("embed")) > embedded_before > done
            answer = memory.search("subject42", sync=False)
            assert answer.mode == "hybrid"
            assert "answered with" not in notes_of(answer)


def test_new_notes_are_found_by_words_while_the_new_vectors_are_not_there(many_notes):
    with FakeOpenAI() as fake:
        with open_memory(many_notes, fake) as memory:
            memory.index()
        (many_notes / "memory/new.md").write_text("# New\n\nA quokka moved in.\n")
        with open_memory(many_notes, fake, model="text-embedding-3-large") as memory:
            fake.inject("unauthorized", times=None)
            report = memory.index()
            assert report.added == 1
            fake.clear_faults()
            answer = memory.search("quokka", sync=False)
            assert answer.hits[0].path == "memory/new.md"
            assert answer.mode == "hybrid"


def test_a_search_before_the_switch_answers_with_the_old_vectors_and_says_so(workspace):
    with FakeOpenAI() as fake:
        with Memory.open(workspace, provider="hashing") as memory:
            memory.index()
        with open_memory(workspace, fake) as memory:
            answer = memory.search("guest wifi")
            assert answer.mode == "hybrid"
            assert "answered with the vectors of hashing/" in notes_of(answer)
        assert fake.requests == []


def test_a_provider_that_was_left_gets_to_see_no_query(workspace, monkeypatch):
    with FakeOpenAI() as fake:
        monkeypatch.setenv("OPENAI_API_KEY", fake.key)
        with open_memory(workspace, fake) as memory:
            memory.index()
        before = len(fake.requests)
        with Memory.open(workspace, provider="hashing", remote__base_url=fake.base_url) as memory:
            answer = memory.search("guest wifi")
            assert answer.mode == "keyword"
            assert "the index was built with openai/" in notes_of(answer)
        assert len(fake.requests) == before


# --- the fallback --------------------------------------------------------------------------------


@pytest.mark.parametrize("fault", ["unauthorized", "quota", "500"])
def test_the_fallback_embeds_when_the_provider_fails_in_a_run(workspace, fault):
    with FakeOpenAI() as fake:
        fake.inject(fault, times=None)
        with open_memory(workspace, fake, fallback="hashing") as memory:
            report = memory.index()
            assert (report.complete, report.pending, report.problems) == (True, 0, ())
            assert report.added > 0
            assert any("so the fallback hashing is used" in note for note in report.notes)
            answer = memory.search("guest wifi", sync=False)
            assert answer.mode == "hybrid"
            assert "so the fallback hashing is used" in notes_of(answer)
            status = memory.status()
            assert status.embedder.startswith("hashing/")
            assert "so the fallback hashing is used" in status.embedder_reason
            assert any("fallback hashing" in check.detail for check in memory.doctor() if not check.ok)


def test_another_process_knows_why_the_fallback_answers_and_goes_back_when_it_can(workspace):
    with FakeOpenAI() as fake:
        fake.inject("unauthorized", times=None)
        with open_memory(workspace, fake, fallback="hashing") as memory:
            memory.index()
        with open_memory(workspace, fake, fallback="hashing") as memory:
            answer = memory.search("guest wifi", sync=False)
            assert answer.mode == "hybrid"
            assert "answered with the vectors of hashing/" in notes_of(answer)
            assert any("openai cannot run" in note for note in memory.status().notes)
            (workspace / "memory/new.md").write_text("# New\n\nA quokka moved in.\n")
            assert memory.search("quokka").index.pending == 0  # it keeps its index fresh, too
        fake.clear_faults()
        with open_memory(workspace, fake, fallback="hashing") as memory:
            report = memory.index()
            assert (report.rebuilt, report.pending) == (True, 0)
            status = memory.status()
            assert status.index_embedder.startswith("openai/")
            assert status.notes == ()
            assert notes_of(memory.search("guest wifi", sync=False)) == ""


def test_vectors_of_the_provider_stay_until_the_fallback_s_are_complete(many_notes):
    with FakeOpenAI() as fake, FakeGemini() as other:
        with open_memory(many_notes, fake) as memory:
            memory.index()
            old = memory._components.embedders.selection.embedder.identity
        other.inject("unauthorized", times=None)
        (many_notes / "memory/new.md").write_text("# New\n\nA quokka moved in.\n")
        fake.inject("quota", times=None)
        with open_memory(many_notes, fake, fallback="nonesuch") as memory:
            report = memory.index()
            assert (report.complete, report.added) == (False, 1)
            assert report.pending >= 1
            assert memory.status().index_embedder == str(old)


def test_a_fallback_that_fails_too_leaves_the_first_reason(workspace):
    with FakeOpenAI() as fake:
        fake.inject("quota", times=None)
        with open_memory(workspace, fake, fallback="gemini") as memory:  # which has no key
            report = memory.index()
            (problem,) = report.problems
            assert "quota" in problem.reason
            assert memory.search("guest wifi", sync=False).hits


def test_the_provider_is_tried_first_in_every_run(workspace):
    with FakeOpenAI() as fake:
        fake.inject("unauthorized", times=1)
        with open_memory(workspace, fake, fallback="hashing") as memory:
            memory.index()
            assert memory.status().index_embedder.startswith("hashing/")
            memory.index()
            assert memory.status().index_embedder.startswith("openai/")
