"""Checks the floor plan: imports follow the pipeline, SQL stays in the store, start-up stays cheap."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.source_code import MODULES, SOURCE, module_at

ROOMS = [  # in the order of the pipeline: a room imports only rooms above it in this list
    "types",
    "reports",
    "errors",
    "protocols",
    "files",
    "settings",
    "text",
    "chunking",
    "sources",
    "embedding",
    "store",
    "sessions",
    "indexing",
    "search",
    "memory",
    "__init__",
    "evaluation",
    "agents",
    "openclaw",
    "mcp",
    "cli",
    "__main__",
    "testing",
]
SEAMS = {"types", "errors", "protocols"}  # they refer to each other
SQL_WORDS = ("SELECT ", "INSERT ", "DELETE FROM", "CREATE TABLE", "PRAGMA ")


def part_of(module: str) -> str:
    """Return the part of notewell that a dotted name belongs to."""
    pieces = module.split(".")
    return pieces[1] if len(pieces) > 1 else "__init__"


def own_part(path: Path) -> str:
    first = path.relative_to(SOURCE).parts[0]
    return first.removesuffix(".py")


def test_every_part_is_a_room_of_the_plan():
    assert {own_part(path) for path in MODULES} == set(ROOMS)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.relative_to(SOURCE).as_posix())
def test_imports_point_up_the_list(path):
    own = own_part(path)
    for name in module_at(path).imports:
        other = part_of(name)
        if other == own or {own, other} <= SEAMS:
            continue
        assert ROOMS.index(other) < ROOMS.index(own), f"{path.name} ({own}) must not import {name}"


def test_surfaces_use_the_public_api_only():
    allowed = {
        "__init__",
        "cli",
        "mcp",
        "agents",
        "settings",
        "types",
        "reports",
        "evaluation",
        "sessions",
        "errors",
    }
    type_only = {"sources.privacy", "search.scoring", "protocols"}  # names in annotations only
    declared_once = {"search.options"}  # what every surface offers
    of_the_process = {"embedding"}  # what only the owner of the process decides
    for path in [*(SOURCE / "cli").rglob("*.py"), *(SOURCE / "mcp").rglob("*.py")]:
        for name in module_at(path).imports:
            short = name.removeprefix("notewell.")
            assert part_of(name) in allowed or short in type_only | declared_once | of_the_process, (
                f"{path.name}: {name}"
            )


def test_sql_lives_in_the_store():
    for path in MODULES:
        if own_part(path) == "store":
            continue
        assert not [text for text in module_at(path).constants if text.startswith(SQL_WORDS)], path


def test_every_module_says_what_it_holds():
    for path in MODULES:
        assert module_at(path).docstring, path


@pytest.mark.slow
@pytest.mark.parametrize(
    ("code", "unwanted"),
    [
        pytest.param("import notewell", {"numpy", "apsw", "click", "onnxruntime"}, id="the package alone"),
        pytest.param(
            "import notewell.memory.memory",
            {"numpy", "onnxruntime", "tokenizers", "rich", "filelock", "psycopg"},
            id="the library",
        ),
        pytest.param(
            "import notewell.cli.reading", {"numpy", "onnxruntime", "rich", "psycopg"}, id="the search command"
        ),
        pytest.param(
            "import notewell.agents.tools", {"numpy", "apsw", "mcp", "pydantic", "httpx"}, id="the agent tools"
        ),
        pytest.param(
            "import notewell.cli.agents, notewell.agents.tools", {"numpy", "mcp", "pydantic"}, id="the mcp command"
        ),
        pytest.param("import notewell.openclaw", {"numpy", "onnxruntime", "rich"}, id="the OpenClaw interface"),
        pytest.param("import notewell.agents.adapters", {"anthropic", "agents", "langchain_core"}, id="the adapters"),
        pytest.param("import notewell.testing", {"numpy", "pytest"}, id="the contract suites"),
        pytest.param(
            "import notewell.cli.agents, notewell.agents.tools.prompt",
            {"numpy", "pyjson5", "mcp"},
            id="the hook command",
        ),
    ],
)
def test_imports_stay_cheap(code, unwanted):
    script = f"import sys; {code}; print(sorted(set(sys.modules) & {unwanted!r}))"
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"
