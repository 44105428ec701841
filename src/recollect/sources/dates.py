"""The path of a note in, the day it is about out; a note whose name begins with no date is evergreen."""

from __future__ import annotations

import re
from datetime import date

# The date ends the name or is parted from the rest of it: 2026-11-150.md and 2026-11-15b.md are not dated.
_LEADING_DATE = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})(?=[-_ ]|\.[^.]*$|$)")


def date_in_name(path: str) -> date | None:
    """Return the date a file name begins with (`2026-11-15.md`, `2026-11-15-slug.md`), in whichever folder it lies."""
    found = _LEADING_DATE.match(path, path.rfind("/") + 1)
    if found is None:
        return None
    year, month, day = map(int, found.groups())
    try:
        return date(year, month, day)
    except ValueError:  # 2026-02-30 looks like a date and is none
        return None
