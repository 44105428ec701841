"""Only a date that begins the file name dates a note."""

from __future__ import annotations

from datetime import date

import pytest

from recollect.sources.dates import date_in_name

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
