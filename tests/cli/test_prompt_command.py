"""`notewell prompt`: the section for a system prompt, with and without the memory itself."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest


@pytest.fixture
def with_days(indexed):
    today = datetime.now().astimezone()
    for days, text in ((0, "met Rosa"), (1, "the boiler works again")):
        note = indexed / "memory" / f"{(today - timedelta(days=days)).date()}.md"
        note.write_text(f"# day\n\n{text}\n", encoding="utf-8")
    return indexed


def test_without_memory_it_is_the_section_alone(notewell, with_days):
    document = notewell("prompt", "-w", with_days, "--json").document
    assert set(document) == {"mode", "prompt"}
    assert "met Rosa" not in document["prompt"]


def test_with_memory_the_notes_follow(notewell, with_days):
    done = notewell("prompt", "--with-memory", "-w", with_days)
    assert (done.code, done.err) == (0, "")
    order = [done.out.index(text) for text in ("## Memory", "lives in Lisbon", "met Rosa", "the boiler works")]
    assert order == sorted(order)


def test_the_report_counts_what_is_printed(notewell, with_days):
    document = notewell("prompt", "--with-memory", "-w", with_days, "--json").document
    counted = document["report"]["systemPrompt"]
    assert counted["chars"] == len(document["prompt"])
    assert document["prompt"][counted["nonProjectContextChars"] :].startswith("From long-term memory")
    assert [file["missing"] for file in document["report"]["injectedWorkspaceFiles"]] == [False, False, False]


def test_what_does_not_fit_is_said(notewell, with_days):
    (with_days / "MEMORY.md").write_text("- a fact\n" * 1000, encoding="utf-8")
    done = notewell("prompt", "--with-memory", "-w", with_days)
    assert "note: MEMORY.md: 3," in done.err
    assert "of 8,999 characters fit" in done.err


def test_a_group_gets_nothing_private(notewell, with_days):
    printed = notewell("prompt", "--with-memory", "--chat", "group", "-w", with_days).out
    assert "met Rosa" in printed
    assert "Lisbon" not in printed
    assert "#L" not in printed


def test_citations_turned_off_leave_no_line_numbers(notewell, with_days):
    printed = notewell("prompt", "--with-memory", "--citations", "off", "-w", with_days).out
    assert "#L" not in printed
    assert "Do not mention file paths" in printed


def test_minimal_is_empty_with_memory_too(notewell, with_days):
    assert notewell("prompt", "--mode", "minimal", "--with-memory", "-w", with_days).out == ""
