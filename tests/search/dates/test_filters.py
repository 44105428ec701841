"""Headings date the chunks below them, and a day is found however it is written."""

from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from notewell import Memory
from notewell.errors import QueryError
from notewell.search.dates.filters import MOST_DAYS, dated_scope, heading_days
from notewell.search.query import query_terms
from notewell.types import StoredChunk

# --- the days of a chunk -----------------------------------------------------------------------


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


# --- other ways to write a day -----------------------------------------------------------------


def phrases(query) -> list[str]:
    return [" ".join(term.tokens) for term in query_terms(query) if len(term.tokens) > 1]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        pytest.param("meeting of 14 July 2026", ["14 juli", "juli 14", "2026 07 14"], id="day month year"),
        pytest.param("July 14th, 2026", ["14 juli", "juli 14", "2026 07 14"], id="month day year"),
        pytest.param("the 14th of July", ["14 juli", "juli 14", "07 14"], id="no year"),
        pytest.param("what happened on 3 March", ["3 march", "march 3", "03 03"], id="one digit"),
        pytest.param("2026-07-14", ["14 juli", "juli 14", "2026 07 14"], id="digits"),
        pytest.param("14. März 2026", ["14 marz", "marz 14", "2026 03 14"], id="German"),
        pytest.param("le 1er août", ["1 aout", "aout 1", "08 01"], id="French"),
        pytest.param("14 de julio de 2026", ["14 julio", "julio 14", "2026 07 14"], id="Spanish"),
        pytest.param("October budget", [], id="a month alone"),
        pytest.param("32 July", [], id="no such day"),
        pytest.param("1999-13-45", [], id="no such month"),
        pytest.param("٣ March", [], id="digits of another script are no day"),
        pytest.param("version 2026 release 14", [], id="numbers alone"),
    ],
)
def test_day_phrases(query, expected):
    assert phrases(query) == expected


def test_a_pasted_calendar_is_cut_short():
    assert len(phrases(" ".join(f"{day} July" for day in range(1, 32)))) <= 3 * MOST_DAYS + 3


@pytest.mark.parametrize("query", ["what happened on 14 July", "notes of July 14, 2026", "2026-07-14"])
@pytest.mark.parametrize(
    ("name", "text"),
    [
        pytest.param("board.md", "The board met on 14 July 2026.", id="day first"),
        pytest.param("board.md", "July 14, 2026: the board met.", id="month first"),
        pytest.param("board.md", "2026-07-14: the board met.", id="digits"),
        pytest.param("2026-07-14.md", "The board met.", id="the file name"),
    ],
)
def test_the_note_that_names_the_day_comes_first(tmp_path, query, name, text):
    notes = tmp_path / "memory"
    notes.mkdir()
    (notes / name).write_text(text + "\n", encoding="utf-8")
    for day, month in ((7, "July"), (14, "June"), (7, "June")):
        other = f"On {day} {month} 2026 we counted 14 boxes; July 2026 came later and more happened in 2026.\n"
        (notes / f"{month}-{day}.md").write_text(other, encoding="utf-8")
    with Memory.open(tmp_path, provider="none") as memory:
        assert memory.search(query).hits[0].path == f"memory/{name}"


# --- since and until -----------------------------------------------------------------------------


def test_since_after_until_is_an_error():
    with pytest.raises(QueryError, match=r"since \(2026-03-02\) is after until \(2026-03-01\)"):
        dated_scope(["memory"], "2026-03-02", date(2026, 3, 1), None, today=date(2026, 11, 16))
