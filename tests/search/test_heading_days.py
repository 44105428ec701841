"""The days that headings name count for questions about a time, in notes whose file has no date."""

from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from notewell import Memory
from notewell.search.heading_days import heading_days
from notewell.types import StoredChunk


def chunk(context: str = "", text: str = "") -> StoredChunk:
    return StoredChunk(1, "memory", "memory/log.md", None, 1, 3, text, context)


@pytest.mark.parametrize(
    ("context", "text", "expected"),
    [
        pytest.param("Log > 2026-02-03", "", (date(2026, 2, 3),) * 2, id="a day in digits"),
        pytest.param("1:56 pm on 8 May, 2023", "", (date(2023, 5, 8),) * 2, id="a day in words, after a clock time"),
        pytest.param("Log > Februar 2026", "", (date(2026, 2, 1), date(2026, 2, 28)), id="a month"),
        pytest.param("", "## 2026-02-03\n\nMet Ana.", (date(2026, 2, 3),) * 2, id="the heading it begins with"),
        pytest.param("2026-02-03", "## 2026-02-05\nMet Ana.", (date(2026, 2, 5),) * 2, id="the nearest heading"),
        pytest.param("Log", "Met Ana on 2026-02-03.", None, id="what only the text says is not when it was written"),
        pytest.param("Goals 2026", "", None, id="a year is too long to tell anything"),
        pytest.param("3 February", "", None, id="a day without a year could be any"),
        pytest.param("What I did last week", "", None, id="words that mean another day every day"),
        pytest.param("Ticket 2026-13-45", "", None, id="what only looks like a date"),
    ],
)
def test_the_days_of_headings(context, text, expected):
    assert heading_days(chunk(context, text)) == expected


@given(st.text(), st.text())
def test_any_heading_gives_days_in_order_or_none(context, text):
    days = heading_days(chunk(context, text))
    assert days is None or days[0] <= days[1]


def test_a_dated_section_of_an_evergreen_note_comes_first(tmp_path):
    days = [date(2026, month, 14) for month in range(1, 10)]
    sections = [f"## {day}\n\nCall with the landlord about the heating.\n" for day in days]
    (tmp_path / "MEMORY.md").write_text("# Log\n\n" + "\n".join(sections), encoding="utf-8")
    with Memory.open(tmp_path, provider="none", **{"chunking.tokens": 30, "chunking.overlap": 0}) as memory:
        memory.index()
        best = memory.search("call with the landlord in June 2026").hits[0]
        assert "2026-06-14" in best.snippet
        assert not memory.search("call with the landlord", since="2026-06-01").hits  # filters go by the file's date
