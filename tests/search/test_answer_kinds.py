"""What a question asks for, and which texts hold one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect import Memory
from recollect.search.answer_kinds import GAIN, holds, kind_asked_for
from recollect.search.fusion import Fused
from recollect.search.ordering import Ordering, Ranked, put_in_order
from recollect.types import Candidate, StoredChunk


@pytest.mark.parametrize(
    ("query", "kind"),
    [
        ("When did Maria move to Porto?", "time"),
        ("and when's the next release", "time"),
        ("In which year did the mill close?", "time"),
        ("How long ago did we renew the domain?", "time"),
        ("how long does the sourdough rest", "duration"),
        ("How often do we rotate the keys?", "duration"),
        ("How many people came to the workshop?", "number"),
        ("what price did we agree on", "number"),
        ("Who repaired the boiler?", "name"),
        ("Where does Declan live?", "name"),
        ("What city did they visit?", "name"),
        ("what is the name of the plumber", "name"),
        ("When deciding on a database, what matters?", None),
        ("what happens when the disk is full", None),
        ("deploy checklist", None),
        ("wann kommt der Installateur", None),
        ("", None),
    ],
)
def test_kind_asked_for(query, kind):
    assert kind_asked_for(query) == kind


@pytest.mark.parametrize(
    ("kind", "text", "held"),
    [
        ("time", "We signed it on 3 March.", True),
        ("time", "The boiler broke last night.", True),
        ("time", "Founded 1987 in Bergen.", True),
        ("time", "We signed it at the notary.", False),
        ("duration", "It rests for two hours.", True),
        ("duration", "It rests in the fridge.", False),
        ("number", "Invoice over 1,250.00 was paid.", True),
        ("number", "A dozen came.", True),
        ("number", "Nobody came.", False),
        ("name", "The boiler was repaired by Hollis.", True),
        ("name", "The boiler was repaired.", False),
        ("name", "Porto: the flat by the river.", False),
    ],
)
def test_holds(kind, text, held):
    assert holds(kind, text, "") is held


def test_a_name_of_the_question_is_no_answer():
    text = "On the phone Declan complained about the boiler."
    assert not holds("name", text, "Who did Declan complain to?")
    assert holds("name", f"{text} He wrote to Hollis.", "Who did Declan complain to?")


@given(st.text(), st.text())
def test_no_text_is_an_error(query, text):
    kind = kind_asked_for(query)
    if kind:
        assert holds(kind, text, query) in {True, False}


@pytest.fixture
def kitchen(tmp_path):
    notes = tmp_path / "memory"
    notes.mkdir()
    lines = {
        "shop": "The espresso machine was serviced in the shop behind the station, gaskets and all.",
        "day": "The espresso machine was serviced by the shop, gaskets and all, on 9 October.",
        "tea": "Loose tea is kept in the tall cupboard beside the window, away from light.",
    }
    for name, line in lines.items():
        (notes / f"{name}.md").write_text(f"{line}\n")
    with Memory.open(tmp_path, provider="none") as memory:
        memory.index()
        yield memory


def test_a_note_that_holds_what_is_asked_for_comes_first(kitchen):
    plain = kitchen.search("espresso machine serviced in the shop")
    assert [hit.path for hit in plain.hits] == ["memory/shop.md", "memory/day.md"]
    asked = kitchen.search("When was the espresso machine serviced in the shop?", explain=True)
    assert [hit.path for hit in asked.hits] == ["memory/day.md", "memory/shop.md"]
    assert 1 < asked.hits[0].explanation["order_factor"] <= GAIN
    assert "order_factor" not in asked.hits[1].explanation


def test_a_dated_note_says_when(kitchen):
    dated = kitchen.workspace / "memory" / "2026-10-09.md"
    dated.write_text("The espresso machine was serviced by the shop, gaskets and all, at the usual price.\n")
    (kitchen.workspace / "memory" / "day.md").unlink()
    asked = kitchen.search("When was the espresso machine serviced in the shop?")
    assert [hit.path for hit in asked.hits] == ["memory/2026-10-09.md", "memory/shop.md"]


def test_hits_at_the_threshold_stay_in_their_order(kitchen):
    later, earlier = (
        Ranked(Fused(Candidate(number, 0.7, None), 0.35, 0.5, 0.0), 0.35, stored(number)) for number in (9, 3)
    )
    with kitchen.store() as store, store.reading() as snapshot:
        placed, _ = put_in_order(snapshot, "When was it serviced?", Ordering(by_answer=True), [later, earlier])
    assert placed == [later, earlier]


def stored(number):
    return StoredChunk(number, "memory", f"memory/{number}.md", None, 1, 1, "no time here", "")


def test_what_other_systems_use_knows_no_kinds(kitchen):
    asked = kitchen.search("When was the espresso machine serviced in the shop?", fusion="rrf", explain=True)
    assert all("order_factor" not in hit.explanation for hit in asked.hits)
