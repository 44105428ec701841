"""Runs a program in a process group of its own, within limits on time, output and memory."""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Mapping, Sequence

MAX_OUTPUT_BYTES = 16 * 2**20
_STEP_S = 0.05  # how often limits are checked
_MEMORY_STEP_S = 0.25  # listing all processes takes a few milliseconds


class LimitExceededError(Exception):
    """Why a program was killed: "took longer than 4.0 s"."""


def run_bounded(
    words: Sequence[str],
    *,
    folder: Path,
    environment: Mapping[str, str],
    timeout_s: float,
    max_rss_mb: int,
    stop: threading.Event | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run a program and return its output; its whole process group has ended then.

    Raises LimitExceededError when it exceeds a limit or `stop` is set, OSError when it cannot be started.
    """
    give_up, next_look = time.monotonic() + timeout_s, 0.0

    def check(printed_bytes: int) -> None:
        nonlocal next_look
        if printed_bytes > MAX_OUTPUT_BYTES:
            raise LimitExceededError(f"printed more than {MAX_OUTPUT_BYTES // 2**20} MB")
        if time.monotonic() > give_up:
            raise LimitExceededError(f"took longer than {timeout_s:.1f} s")
        if stop is not None and stop.is_set():
            raise LimitExceededError("was stopped")
        if time.monotonic() > next_look:
            next_look = time.monotonic() + _MEMORY_STEP_S
            if _group_rss_bytes(process.pid) > max_rss_mb * 2**20:
                raise LimitExceededError(f"used more than {max_rss_mb} MB of memory")

    pipe = subprocess.PIPE
    with subprocess.Popen(  # noqa: S603 - a program that only the user's own settings can name
        words, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, start_new_session=True
    ) as process:
        try:
            stdout, stderr = _read(process, check)
        finally:
            with suppress(ProcessLookupError, PermissionError):  # macOS refuses to signal a group of zombies
                os.killpg(process.pid, signal.SIGKILL)
    texts = (output.decode("utf-8", "replace") for output in (stdout, stderr))
    return subprocess.CompletedProcess(words, process.returncode, *texts)


def _read(process: subprocess.Popen[bytes], check: Callable[[int], None]) -> tuple[bytearray, bytearray]:
    """Return the output once the program has ended, checking the limits meanwhile."""
    assert process.stdout is not None
    assert process.stderr is not None
    stdout, stderr = bytearray(), bytearray()
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ, stdout)
        selector.register(process.stderr, selectors.EVENT_READ, stderr)
        while selector.get_map() or process.poll() is None:
            has_ended = process.poll() is not None  # checked first: then all output is in the pipes
            ready = selector.select(_STEP_S)
            for key, _ in ready:
                piece = os.read(key.fd, 65536)
                key.data.extend(piece)
                if not piece:
                    selector.unregister(key.fileobj)
            check(len(stdout) + len(stderr))
            if has_ended and not ready:
                break  # a process left behind keeps the pipes open
    return stdout, stderr


def _group_rss_bytes(group: int) -> int:
    """Return the resident memory of all processes of a group."""
    if not Path("/proc/self/stat").exists():  # macOS and the BSDs
        listed = subprocess.run(["ps", "-A", "-o", "pgid=,rss="], capture_output=True, text=True, check=False)  # noqa: S607
        rows = (line.split() for line in listed.stdout.splitlines())
        return sum(int(rss) * 1024 for pgid, rss in rows if int(pgid) == group)
    total = 0
    for pid in filter(str.isdecimal, os.listdir("/proc")):  # noqa: PTH208 - strings are all that is needed
        with suppress(OSError):  # it has ended
            # After the name, which may contain anything: state, parent, group; the 22nd is the memory in pages.
            fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
            total += int(fields[21]) if int(fields[2]) == group else 0
    return total * os.sysconf("SC_PAGE_SIZE")
