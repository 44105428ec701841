"""Deciding what to do, without touching a file."""

from __future__ import annotations

import pytest

from notewell.indexing.plan import COARSE_TICK_NS, FINE_TICK_NS, plan_changes, trusted_stamp
from notewell.types import FileStamp, StoredDocument

NOW_NS = 1_795_000_000_123_456_789


def stamp(path, size=10, mtime_ns=5, source="memory"):
    return FileStamp(source, path, size, mtime_ns)


def stored(*stamps):
    return {(each.source, each.path): StoredDocument(each, f"hash of {each.path}") for each in stamps}


@pytest.mark.parametrize(
    ("listed", "known", "added", "touched", "removed", "unchanged"),
    [
        pytest.param([], [], [], [], [], 0, id="nothing anywhere"),
        pytest.param([stamp("a")], [], ["a"], [], [], 0, id="a new file"),
        pytest.param([stamp("a")], [stamp("a")], [], [], [], 1, id="the same file"),
        pytest.param([stamp("a", size=11)], [stamp("a")], [], ["a"], [], 0, id="another size"),
        pytest.param([stamp("a", mtime_ns=6)], [stamp("a")], [], ["a"], [], 0, id="another time"),
        pytest.param([stamp("a", mtime_ns=4)], [stamp("a")], [], ["a"], [], 0, id="an earlier time counts as well"),
        pytest.param([], [stamp("a")], [], [], ["a"], 0, id="a file that is gone"),
        pytest.param([stamp("b")], [stamp("a")], ["b"], [], ["a"], 0, id="a rename is one gone and one new"),
        pytest.param([stamp("A")], [stamp("a")], ["A"], [], ["a"], 0, id="case matters"),
        pytest.param(
            [stamp("a", source="sessions")], [stamp("a")], ["a"], [], ["a"], 0, id="the same path of another source"
        ),
        pytest.param([stamp("a", mtime_ns=7)], [stamp("a", mtime_ns=0)], [], ["a"], [], 0, id="a time not trusted"),
    ],
)
def test_plan_changes(listed, known, added, touched, removed, unchanged):
    plan = plan_changes(listed, stored(*known))
    assert [each.path for each in plan.added] == added
    assert [stamp.path for stamp, _ in plan.touched] == touched
    assert [document.stamp.path for document in plan.removed] == removed
    assert plan.unchanged == unchanged
    assert plan.is_empty == (not (added or touched or removed))


@pytest.mark.parametrize(
    ("unlisted", "removed"),
    [
        pytest.param([], ["memory/a/x.md", "memory/ab.md", "memory/b.md"], id="all was listed"),
        pytest.param(["memory/a"], ["memory/ab.md", "memory/b.md"], id="a folder, not what merely begins like it"),
        pytest.param(["memory/b.md"], ["memory/a/x.md", "memory/ab.md"], id="a single file"),
        pytest.param(["memory"], [], id="everything"),
    ],
)
def test_what_could_not_be_listed_is_not_gone(unlisted, removed):
    known = stored(stamp("memory/a/x.md"), stamp("memory/ab.md"), stamp("memory/b.md"))
    plan = plan_changes([], known, unlisted=unlisted)
    assert [document.stamp.path for document in plan.removed] == removed
    assert plan.unchanged == 3 - len(removed)


@pytest.mark.parametrize(
    ("mtime_ns", "trusted"),
    [
        pytest.param(NOW_NS - 3 * FINE_TICK_NS, True, id="older than two ticks"),
        pytest.param(NOW_NS - FINE_TICK_NS, False, id="within the tick"),
        pytest.param(NOW_NS, False, id="this very moment"),
        pytest.param(NOW_NS + FINE_TICK_NS, False, id="a clock slightly ahead"),
        pytest.param(NOW_NS + 3_600 * COARSE_TICK_NS, True, id="far in the future: it cannot be written by that clock"),
        pytest.param(
            (NOW_NS // COARSE_TICK_NS) * COARSE_TICK_NS, False, id="whole seconds: a coarse clock, so wait longer"
        ),
        pytest.param((NOW_NS // COARSE_TICK_NS - 3) * COARSE_TICK_NS, True, id="whole seconds, old enough"),
    ],
)
def test_trusted_stamp(mtime_ns, trusted):
    given = stamp("a", mtime_ns=mtime_ns)
    kept = trusted_stamp(given, now_ns=NOW_NS)
    assert kept == (given if trusted else stamp("a", mtime_ns=0))


def test_a_stamp_without_a_time_never_equals_a_listed_one():
    listed = stamp("a", mtime_ns=NOW_NS)
    remembered = trusted_stamp(listed, now_ns=NOW_NS)
    assert [stamp for stamp, _ in plan_changes([listed], stored(remembered)).touched] == [listed]
