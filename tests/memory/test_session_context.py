"""What an agent gets at the start of a session: which files, how much of each, and the report about it."""

from __future__ import annotations

import time
from datetime import date

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from notewell import Memory, MemoryDisabledError, QueryError
from notewell.sources.notes import NotesSource
from notewell.text.fences import strip_fenced

TODAY = date(2026, 3, 1)
DAYS = ("memory/2026-03-01.md", "memory/2026-02-28.md")


@pytest.fixture
def notes(tmp_path):
    (tmp_path / "memory").mkdir()
    (tmp_path / "MEMORY.md").write_text("# Memory\n\nAna lives in Lisbon.\n", encoding="utf-8")
    for path, text in zip(DAYS, ("met Rosa", "the boiler works again"), strict=True):
        (tmp_path / path).write_text(f"# day\n\n{text}\n", encoding="utf-8")
    (tmp_path / "memory" / "2026-02-27.md").write_text("too long ago\n", encoding="utf-8")
    return tmp_path


@pytest.fixture
def memory(notes):
    with Memory.open(notes, provider="none") as opened:
        yield opened


def by_path(context):
    return {file.path: (file.missing, file.raw_chars, file.injected_chars, file.truncated) for file in context.files}


def test_it_is_the_curated_memory_and_the_notes_of_two_days(memory):
    context = memory.session_context(today=TODAY)
    order = [context.text.index(text) for text in ("Ana lives in Lisbon", "met Rosa", "the boiler works again")]
    assert order == sorted(order)
    assert "too long ago" not in context.text
    assert '<recalled-memory origin="MEMORY.md#L1-L3">' in context.text
    assert by_path(context) == {
        "MEMORY.md": (False, 30, 30, False),
        DAYS[0]: (False, 15, 15, False),
        DAYS[1]: (False, 29, 29, False),
    }
    assert list(by_path(context)) == ["MEMORY.md", *DAYS]


def test_nothing_is_indexed_for_it(memory, notes):
    memory.session_context(today=TODAY)
    assert not (notes / ".notewell").exists()


def test_what_is_not_there_is_reported_as_missing(tmp_path):
    with Memory.open(tmp_path, provider="none") as memory:
        context = memory.session_context(today=TODAY)
    assert context.text == ""
    assert by_path(context) == dict.fromkeys(["MEMORY.md", *DAYS], (True, 0, 0, False))


def test_the_curated_memory_may_be_written_small(tmp_path):
    (tmp_path / "memory.md").write_text("Ana lives in Lisbon.\n", encoding="utf-8")
    with Memory.open(tmp_path, provider="none") as memory:
        context = memory.session_context(today=TODAY)
    assert "Ana lives in Lisbon" in context.text
    assert sum(not file.missing for file in context.files) == 1
    assert len(context.files) == 3


def test_a_group_gets_nothing_private(memory, notes):
    (notes / DAYS[1]).write_text("---\nprivate: true\n---\nthe boiler works again\n", encoding="utf-8")
    context = memory.session_context(chat="group", today=TODAY)
    assert "met Rosa" in context.text
    assert "Lisbon" not in context.text
    assert "boiler" not in context.text
    assert by_path(context)["MEMORY.md"] == by_path(context)[DAYS[1]] == (True, 0, 0, False)
    assert f'origin="{DAYS[0]}"' in context.text  # no line numbers: a group gets no citations


def test_a_memory_that_was_opened_for_a_group_stays_so(notes):
    with Memory.open(notes, provider="none", chat="group") as memory:
        assert "Lisbon" not in memory.session_context(today=TODAY).text
        with pytest.raises(QueryError):
            memory.session_context(chat="direct")


def test_secrets_are_redacted_where_notes_are(notes):
    key = "sk-" + "a1B2c3D4" * 5
    (notes / "MEMORY.md").write_text(f"the key is {key}\n", encoding="utf-8")
    with Memory.open(notes, provider="none", redaction__notes=True) as memory:
        assert key not in memory.session_context(today=TODAY).text


# --- the budget ------------------------------------------------------------------------------------


def test_a_long_file_leaves_room_for_the_others(memory, notes):
    (notes / "MEMORY.md").write_text("".join(f"- fact number {n}\n" for n in range(1000)), encoding="utf-8")
    context = memory.session_context(today=TODAY)
    assert 3900 < len(context.text) <= 4000
    assert "met Rosa" in context.text
    assert "the boiler works again" in context.text
    assert [file.truncated for file in context.files] == [True, False, False]


def test_the_curated_memory_is_cut_at_its_end_and_a_day_at_its_beginning(memory, notes):
    lines = "".join(f"- entry number {n}\n" for n in range(1, 501))
    (notes / "MEMORY.md").write_text(lines, encoding="utf-8")
    (notes / DAYS[0]).write_text(lines, encoding="utf-8")
    context = memory.session_context(today=TODAY)
    curated, day, _ = context.text.split("<recalled-memory ")[1:]
    assert curated.startswith('origin="MEMORY.md#L1-L')
    assert "- entry number 1\n" in curated
    assert day.split("\n")[0].endswith('-L500">')
    first = int(day.split("#L")[1].split("-")[0])
    assert day.split("\n")[1] == f"- entry number {first}"
    assert "- entry number 500\n" in day


def test_a_line_that_is_too_long_is_cut(memory, notes):
    (notes / "MEMORY.md").write_text("word " * 3000, encoding="utf-8")
    context = memory.session_context(today=TODAY)
    assert " […]\n</recalled-memory>" in context.text
    assert context.files[0].truncated
    assert context.files[0].injected_chars > 3000


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    texts=st.lists(st.text(max_size=900) | st.just("</recalled-memory>\n" * 40), min_size=3, max_size=3),
    budget=st.integers(0, 3000),
)
def test_the_budget_always_holds(memory, notes, texts, budget):
    for path, text in zip(("MEMORY.md", *DAYS), texts, strict=True):
        (notes / path).write_text(text, encoding="utf-8", errors="replace")
    context = memory.session_context(today=TODAY, max_chars=budget)
    assert len(context.text) <= budget
    assert len(strip_fenced(context.text)) <= 130  # the introduction: nothing escapes its fence
    for file in context.files:
        assert file.truncated == (file.injected_chars < file.raw_chars)


def test_a_very_long_file_takes_no_time(memory, notes):
    (notes / "MEMORY.md").write_text("- one more fact\n" * 100_000, encoding="utf-8")
    began = time.perf_counter()
    memory.session_context(today=TODAY)
    assert time.perf_counter() - began < 2


# --- what goes wrong -------------------------------------------------------------------------------


def test_a_file_that_cannot_be_read_is_named_and_the_others_are_there(memory, monkeypatch):
    read = NotesSource.read

    def refuse(self, stamp):  # permissions do not stop root, who may run these tests
        if stamp.path == "MEMORY.md":
            raise PermissionError(13, "Permission denied")
        return read(self, stamp)

    monkeypatch.setattr(NotesSource, "read", refuse)
    context = memory.session_context(today=TODAY)
    assert "MEMORY.md: cannot be read: Permission denied" in context.notes
    assert "met Rosa" in context.text


def test_a_folder_of_that_name_is_no_note(memory, notes):
    (notes / DAYS[0]).unlink()
    (notes / DAYS[0]).mkdir()
    assert by_path(memory.session_context(today=TODAY))[DAYS[0]] == (True, 0, 0, False)


def test_a_memory_that_is_turned_off_says_so(notes):
    with Memory.open(notes, enabled=False) as memory, pytest.raises(MemoryDisabledError):
        memory.session_context()


# --- the report ------------------------------------------------------------------------------------


def test_the_report_has_the_fields_of_openclaw(memory, notes):
    (notes / "MEMORY.md").write_text("- a fact\n" * 1000, encoding="utf-8")
    context = memory.session_context(today=TODAY)
    prompt = f"You are a helpful agent.\n\n{context.text}"
    report = context.report(prompt, provider="anthropic", model="claude")
    assert set(report) == {
        "source",
        "generatedAt",
        "provider",
        "model",
        "workspaceDir",
        "systemPrompt",
        "injectedWorkspaceFiles",
    }
    assert (report["source"], report["workspaceDir"]) == ("run", str(notes))
    assert abs(report["generatedAt"] - time.time() * 1000) < 60_000
    assert report["systemPrompt"] == {
        "chars": len(prompt),
        "projectContextChars": len(context.text),
        "nonProjectContextChars": len("You are a helpful agent.\n\n"),
    }
    first = report["injectedWorkspaceFiles"][0]
    assert (first["name"], first["path"]) == ("MEMORY.md", str(notes / "MEMORY.md"))
    assert (first["missing"], first["rawChars"], first["truncated"]) == (False, 8999, True)
    assert 3000 < first["injectedChars"] < 4000


def test_without_a_prompt_the_report_is_an_estimate(memory):
    context = memory.session_context(today=TODAY)
    report = context.report()
    assert report["source"] == "estimate"
    assert report["systemPrompt"]["chars"] == report["systemPrompt"]["projectContextChars"] == len(context.text)
    assert context.report("some other prompt")["systemPrompt"]["projectContextChars"] == 0


def test_the_report_is_kept_with_a_session(memory):
    pytest.importorskip("pyjson5", reason="needs the extra `sessions`")
    report = memory.session_context(today=TODAY).report()
    entry = memory.conversations.create(system_prompt_report=report)
    assert memory.conversations.entry(entry.session_id).system_prompt_report == report


def test_what_init_writes_tells_an_agent_nothing(tmp_path):
    with Memory.open(tmp_path, create=True, provider="none") as memory:
        assert memory.session_context().text == ""
        with (tmp_path / "MEMORY.md").open("a") as file:
            file.write("\nThe boat is called Heron.\n")
        assert "The boat is called Heron." in memory.session_context().text
