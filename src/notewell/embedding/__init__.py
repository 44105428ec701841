"""Turns text into unit vectors, on this machine or through a provider."""

import sys

JOBS_FOLDER = "batch-jobs"  # in the state folder: a file for each batch job; looking for it must not import `jobs`
_retries_are_silent = False


def silence_retries() -> None:
    """Turn off stamina's retry hooks in this process, which may print to stdout.

    Only commands call this; a library leaves the choice to the application.
    """
    global _retries_are_silent  # noqa: PLW0603 - stamina's switch is process-wide, and stamina may not be loaded yet
    _retries_are_silent = True
    if "stamina" in sys.modules:
        apply_retry_hooks()


def apply_retry_hooks() -> None:
    """Apply `silence_retries` to stamina."""
    if _retries_are_silent:
        import stamina.instrumentation

        stamina.instrumentation.set_on_retry_hooks(())
