"""The path and the front matter of a note in, the day it is about out; a note without a date is evergreen."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date

# The date ends the name or is parted from the rest of it: 2026-11-150.md and 2026-11-15b.md are not dated.
_IN_NAME = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})(?=[-_ ]|\.[^.]*$|$)")
_CLOCK = r"[0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]+)?)? ?(?:[Zz]|[+-][0-9]{2}:?[0-9]{2})?"
_IN_FRONT_MATTER = re.compile(rf"([0-9]{{4}})(?:-([0-9]{{2}})-|/([0-9]{{2}})/)([0-9]{{2}})(?:[Tt ]{_CLOCK})?")


def note_date(path: str, metadata: Mapping[str, str]) -> date | None:
    """Return the day of a note: the date its file name begins with, or else the `date` of its front matter."""
    return date_in_name(path) or date_in_front_matter(metadata)


def date_in_name(path: str) -> date | None:
    """Return the date a file name begins with (`2026-11-15.md`, `2026-11-15-slug.md`), in whichever folder it lies."""
    found = _IN_NAME.match(path, path.rfind("/") + 1)
    return _day(*found.groups()) if found else None


def date_in_front_matter(metadata: Mapping[str, str]) -> date | None:
    """Return the day that `date` names (`2026-03-14`, `2026/03/14`, with or without a time); None for other forms."""
    found = _IN_FRONT_MATTER.fullmatch(metadata.get("date", ""))
    return _day(found[1], found[2] or found[3], found[4]) if found else None


def _day(year: str, month: str, day: str) -> date | None:
    try:
        return date(int(year), int(month), int(day))
    except ValueError:  # 2026-02-30 looks like a date and is none
        return None
