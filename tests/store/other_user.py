"""Runs a script where a folder can be read and not written, also when the tests run as root."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

# Root may write anywhere, so it becomes nobody; nobody may not see this Python, so all modules are loaded before.
PRELUDE = """
import importlib, os, pkgutil, sys
import apsw, numpy, notewell.store
for module in pkgutil.walk_packages(notewell.store.__path__, "notewell.store."):
    importlib.import_module(module.name)
if os.geteuid() == 0:
    os.setgroups([]); os.setgid(65534); os.setuid(65534)
try:
    open(os.path.join(sys.argv[1], "probe"), "w")
except PermissionError:
    pass
else:
    sys.exit("the folder can be written")
"""


def run_as_other_user(script: str, folder: Path) -> str:
    """Run the script with the folder as its argument, without the right to write there; return what it printed."""
    if os.name == "nt":
        pytest.skip("the mode of a Windows folder does not keep anyone from writing into it")
    with _reachable(folder) as place:
        modes = [(path, stat.S_IMODE(path.stat().st_mode)) for path in (place, *place.iterdir())]
        try:
            for path, _ in modes:
                path.chmod(0o555 if path.is_dir() else 0o444)
            result = subprocess.run(
                [sys.executable, "-c", PRELUDE + script, os.fspath(place)], capture_output=True, text=True, check=False
            )
        finally:
            for path, mode in modes:
                path.chmod(mode)
    assert result.returncode == 0, result.stderr
    return result.stdout


@contextmanager
def _reachable(folder: Path) -> Iterator[Path]:
    """Move the folder to where nobody may go, for a while; the folders that pytest makes are closed to others.

    They are not opened instead, because tests that run at the same time share them.
    """
    if os.geteuid() != 0:
        yield folder
        return
    with tempfile.TemporaryDirectory(prefix="notewell-tests-") as parent:
        Path(parent).chmod(0o755)
        place = folder.rename(Path(parent) / folder.name)
        try:
            yield place
        finally:
            place.rename(folder)
