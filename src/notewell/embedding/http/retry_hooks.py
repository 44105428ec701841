"""Whether tries are announced: a program that owns its process turns the announcements off before the first call."""

from __future__ import annotations

import sys

_silent = False


def silence() -> None:
    """Let stamina announce no waits in this process: its hooks may print to stdout, where a command's answer goes.

    A library leaves that choice to the application; only a command calls this.
    """
    global _silent  # noqa: PLW0603 - stamina's own switch is one of the whole process, and may not be loaded yet
    _silent = True
    if "stamina" in sys.modules:
        apply()


def apply() -> None:
    """Pass the choice on to stamina, once it is loaded."""
    if _silent:
        import stamina.instrumentation

        stamina.instrumentation.set_on_retry_hooks(())
