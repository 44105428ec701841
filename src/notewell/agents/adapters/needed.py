"""The name of an extra in, an error that says how to install it out."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from notewell.errors import NotewellError

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def needs_extra(extra: str) -> Iterator[None]:
    """Turn a missing package into an error with the next step."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] == "notewell":
            raise
        raise NotewellError(
            f"this adapter needs a package that is missing: {error.name}", hint=f"pip install 'notewell[{extra}]'"
        ) from error
