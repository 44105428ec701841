"""What a remembered fact carries besides its text: a category and an importance."""

from __future__ import annotations

from typing import get_args

from notewell.errors import NotewellError, RememberError
from notewell.types import Category

CATEGORIES: tuple[Category, ...] = get_args(Category)
IMPORTANCES = range(1, 11)
IMPORTANCE = 5  # where none is given


def checked_category(value: object, error: type[NotewellError] = RememberError) -> Category:
    """Return the category; raise `error` for a word that is none."""
    for category in CATEGORIES:
        if value == category:
            return category
    raise error(f"there is no category {value!r}", hint=f"use one of: {', '.join(CATEGORIES)}")


def checked_importance(value: object) -> int:
    """Return the importance; raise RememberError for anything but a whole number from 1 to 10."""
    if not isinstance(value, int) or isinstance(value, bool) or value not in IMPORTANCES:
        raise RememberError(f"importance must be a whole number from 1 to 10, got {value!r}", hint="10 matters most")
    return value
