"""Runs a script where a folder can be read and not written, also when the tests run as root."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

# Root may write anywhere, so it becomes nobody; nobody may not see this Python, so all modules are loaded before.
PRELUDE = """
import importlib, os, pkgutil, sys
import apsw, numpy, recollect.store
for module in pkgutil.walk_packages(recollect.store.__path__, "recollect.store."):
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
    opened = _make_reachable(folder) if os.geteuid() == 0 else []
    modes = [(path, stat.S_IMODE(path.stat().st_mode)) for path in (folder, *folder.iterdir())]
    try:
        for path, _ in modes:
            path.chmod(0o555 if path.is_dir() else 0o444)
        result = subprocess.run(
            [sys.executable, "-c", PRELUDE + script, os.fspath(folder)], capture_output=True, text=True, check=False
        )
    finally:
        for path, mode in [*modes, *opened]:
            path.chmod(mode)
    assert result.returncode == 0, result.stderr
    return result.stdout


def _make_reachable(folder: Path) -> list[tuple[Path, int]]:
    """Let others pass through our own temporary folders; return what they were."""
    changed = []
    for parent in folder.parents:
        mode = stat.S_IMODE(parent.stat().st_mode)
        if not mode & stat.S_IXOTH:
            changed.append((parent, mode))
            parent.chmod(mode | stat.S_IXOTH)
    return changed
