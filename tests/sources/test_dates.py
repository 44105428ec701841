"""A date that begins the file name dates a note, or else the `date` of its front matter; nothing else does."""

from __future__ import annotations

from datetime import date

import pytest

from notewell.sources.front_matter import date_in_front_matter, date_in_name, note_date, split_front_matter

DAY = date(2026, 11, 15)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("memory/2026-11-15.md", DAY),
        ("2026-11-15.md", DAY),
        ("memory/2026-11-15-standup.md", DAY),
        ("memory/2026-11-15_standup.md", DAY),
        ("memory/2026-11-15 standup v1.2.md", DAY),
        ("memory/2026-11-15-1430.md", DAY),
        ("memory/projects/billing/2026-11-15-incident.md", DAY),
        ("@vault/daily/2026-11-15.MD", DAY),
        ("memory/2024-02-29.md", date(2024, 2, 29)),
        ("memory/2026-02-29.md", None),
        ("memory/2026-02-30.md", None),
        ("memory/2026-13-01.md", None),
        ("memory/2026-00-10.md", None),
        ("memory/0000-01-01.md", None),
        ("memory/2026-11-150.md", None),
        ("memory/2026-11-15b.md", None),
        ("memory/2026-11-15.draft.md", None),
        ("memory/12026-11-15.md", None),
        ("memory/2026-1-5.md", None),
        ("memory/20261115.md", None),
        ("memory/2026-11.md", None),
        ("memory/notes-2026-11-15.md", None),
        ("memory/2026-11-15/notes.md", None),
        ("memory/٢٠٢٦-١١-١٥.md", None),
        ("MEMORY.md", None),
        ("memory.md", None),
        ("", None),
    ],
)
def test_date_in_name(path, expected):
    assert date_in_name(path) == expected


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("date: 2026-11-15", DAY),
        ('date: "2026-11-15"', DAY),
        ("date: '2026-11-15'", DAY),
        ("Date: 2026-11-15", DAY),
        ("date:   2026-11-15   # the day of the call", DAY),
        ("date: 2026/11/15", DAY),
        ("date: 2026/11/15 09:30", DAY),
        ("date: 2026-11-15T10:00:00Z", DAY),
        ("date: 2026-11-15t10:00:00z", DAY),
        ("date: 2026-11-15T23:59:59.123+09:00", DAY),
        ("date: 2026-11-15 10:00", DAY),
        ("date: 2026-11-15 10:00:00 -0700", DAY),
        ("date: 2024-02-29", date(2024, 2, 29)),
        ("date: 2026-02-29", None),
        ("date: 2026-13-01", None),
        ("date: 0000-01-01", None),
        ("date: 2026-11/15", None),
        ("date: 2026-1-5", None),
        ("date: 20261115", None),
        ("date: 15.11.2026", None),
        ("date: 11/15/2026", None),
        ("date: 2026-11", None),
        ("date: 2026-11-15 to 2026-11-17", None),
        ("date: 2026-11-15T", None),
        ("date: 15 November 2026", None),
        ("date: ٢٠٢٦-١١-١٥", None),
        ("date: today", None),
        ("date:", None),
        ("created: 2026-11-15", None),
        ("update: 2026-11-15", None),
    ],
)
def test_date_in_front_matter(line, expected):
    metadata, _ = split_front_matter(f"---\n{line}\n---\nMet Ana.\n")
    assert date_in_front_matter(metadata) == expected


@pytest.mark.parametrize(
    ("path", "metadata", "expected"),
    [
        pytest.param("memory/call.md", {"date": "2026-11-15"}, DAY, id="from the front matter"),
        pytest.param("memory/2026-11-15.md", {"date": "2026-03-14"}, DAY, id="the file name comes first"),
        pytest.param("memory/2026-02-30.md", {"date": "2026-11-15"}, DAY, id="a name that only looks like a date"),
        pytest.param("memory/call.md", {"title": "2026-11-15"}, None, id="neither"),
    ],
)
def test_note_date(path, metadata, expected):
    assert note_date(path, metadata) == expected
