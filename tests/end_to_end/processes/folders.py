"""Folders that may not be written or have little room, and processes that must obey; each skips where it cannot be."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

_PR_CAPBSET_DROP = 24  # linux/prctl.h
_RIGHTS_OF_ROOT = (1, 2, 3)  # linux/capability.h: DAC_OVERRIDE, DAC_READ_SEARCH, FOWNER


def _bound_by_permissions() -> None:
    """Give up, in a child process of root before it becomes another program, what lets root ignore permissions."""
    import ctypes

    for right in _RIGHTS_OF_ROOT:
        if ctypes.CDLL(None).prctl(_PR_CAPBSET_DROP, right, 0, 0, 0):
            os._exit(77)


def as_plain_user(*words: object, **environ: str) -> subprocess.CompletedProcess[str]:
    """Run `notewell` as somebody whom file permissions bind: as this user, or as a root without its privileges."""
    if not hasattr(os, "geteuid"):
        pytest.skip("file permissions do not work like this on Windows")
    if os.geteuid() == 0 and not sys.platform.startswith("linux"):
        pytest.skip("permissions do not bind root, and only Linux lets it give that up")
    env = {**os.environ, "NOTEWELL_PROVIDER": "hashing", "NOTEWELL_CONFIG": os.devnull, **environ}
    done = subprocess.run(
        [sys.executable, "-m", "notewell", *map(str, words)],
        capture_output=True,
        text=True,
        check=False,
        env=env,
        timeout=120,
        preexec_fn=_bound_by_permissions if os.geteuid() == 0 else None,
    )
    if done.returncode == 77:
        pytest.skip("root cannot give up its privileges here")
    return done


@contextmanager
def with_mode(mode: int, *paths: Path) -> Iterator[None]:
    """Change the permissions of files or folders for a while."""
    before = [path.stat().st_mode for path in paths]
    for path in paths:
        path.chmod(mode)
    try:
        yield
    finally:
        for path, old in zip(paths, before, strict=True):
            path.chmod(old)


@contextmanager
def small_disk(folder: Path, size_kb: int) -> Iterator[Path]:
    """Yield a file system of its own with so much room; skips where none can be mounted."""
    if not sys.platform.startswith("linux") or os.geteuid() != 0:
        pytest.skip("mounting a small file system needs Linux and root")
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size_kb}k,mode=755", "tmpfs", str(folder)],
        capture_output=True,
        check=False,
    )
    if mounted.returncode:
        pytest.skip(f"cannot mount a small file system here: {mounted.stderr.decode().strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)
