"""A day in a query is also looked for the other ways to write it."""

from __future__ import annotations

import pytest

from notewell import Memory
from notewell.search.day_phrases import MOST_DAYS
from notewell.search.query import query_terms


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
