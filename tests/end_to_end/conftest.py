"""The command as a function, as the tests of single commands use it."""

from __future__ import annotations

from tests.cli.conftest import indexed, notewell

__all__ = ["indexed", "notewell"]
