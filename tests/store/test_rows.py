"""How the chunks of a document become new ones."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from notewell.store.rows import StoredRow, plan_chunks
from notewell.testing.samples import prepared
from notewell.types import EntryLabel

LABEL = EntryLabel("k3f9a2qx", "decision", 8)


def stored(number, text, *, line=1, context="", turn=0, parts=1, label=()):
    chunk = prepared(text, line=line, context=context).chunk
    return StoredRow(number, chunk.embedded_hash, len(context), chunk.first_line, chunk.last_line, turn, parts, *label)


@pytest.mark.parametrize(
    ("old", "new", "moved", "added", "removed"),
    [
        pytest.param([], ["a"], [], ["a"], [], id="the first chunk"),
        pytest.param(["a"], ["a"], [], [], [], id="nothing changed"),
        pytest.param(["a", "b"], ["x", "a", "b"], [1, 2], ["x"], [], id="a chunk on top moves the others"),
        pytest.param(["a", "b"], ["b"], [2], [], [1], id="one goes"),
        pytest.param(["a", "a"], ["a", "a", "a"], [], ["a"], [], id="one more of the same"),
        pytest.param(["a", "a"], ["a"], [], [], [2], id="one less of the same"),
        pytest.param(["a"], [], [], [], [1], id="all go"),
    ],
)
def test_plan(old, new, moved, added, removed):
    rows = [stored(number, text, line=number) for number, text in enumerate(old, start=1)]
    plan = plan_chunks(rows, [prepared(text, line=number) for number, text in enumerate(new, start=1)])
    assert [chunk_id for chunk_id, _ in plan.moved] == moved
    assert [item.chunk.text for item in plan.added] == added
    assert list(plan.removed) == removed
    assert plan.reworded == ()


@pytest.mark.parametrize(
    ("place", "moves"),
    [
        pytest.param({"line": 3, "turn": 2, "parts": 4}, False, id="the same place"),
        pytest.param({"line": 4, "turn": 2, "parts": 4}, True, id="another line"),
        pytest.param({"line": 3, "turn": 1, "parts": 4}, True, id="another message"),
        pytest.param({"line": 3, "turn": 2, "parts": 3}, True, id="another number of parts"),
    ],
)
def test_a_chunk_in_another_place_moves(place, moves):
    plan = plan_chunks([stored(1, "a", line=3, turn=2, parts=4)], [prepared("a", **place)])
    assert [chunk_id for chunk_id, _ in plan.moved] == ([1] if moves else [])
    assert (plan.reworded, plan.added, plan.removed) == ((), (), ())


@pytest.mark.parametrize(
    ("label", "moves"),
    [(LABEL, False), (None, True), (LABEL._replace(importance=9), True), (LABEL._replace(category="fact"), True)],
)
def test_a_chunk_with_another_label_moves(label, moves):
    plan = plan_chunks([stored(1, "a", label=LABEL)], [prepared("a", label=label)])
    assert [chunk_id for chunk_id, _ in plan.moved] == ([1] if moves else [])
    assert (plan.reworded, plan.added, plan.removed) == ((), (), ())


@given(old=st.lists(st.sampled_from("abcd")), new=st.lists(st.sampled_from("abcd")))
def test_every_chunk_is_accounted_for_once(old, new):
    rows = [stored(number, text) for number, text in enumerate(old, start=1)]
    plan = plan_chunks(rows, [prepared(text) for text in new])
    kept = len(old) - len(plan.removed)
    assert kept + len(plan.added) == len(new)
    for text in "abcd":
        assert [item.chunk.text for item in plan.added].count(text) == max(0, new.count(text) - old.count(text))
