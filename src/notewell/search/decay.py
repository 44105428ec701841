"""The date of a note and today in, how much its score still counts out; pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import date


def age_factor(dated: date | None, today: date, *, half_life_days: float) -> float:
    """Return 1 for an evergreen note, one half for a note `half_life_days` old; a date to come gains nothing."""
    if dated is None:
        return 1.0
    age_days = max(0, (today - dated).days)
    return float(0.5 ** (age_days / half_life_days))
