"""The layers of the design, enforced: imports point down, stages of one layer do not know each other."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "notewell"

LAYERS = {
    "types": 0,
    "errors": 0,
    "protocols": 0,
    "faults": 0,
    "durability": 0,
    "fences": 1,
    "lexicon": 1,
    "settings": 1,
    "redaction": 1,
    "privacy": 1,
    "remote": 1,
    "workspace": 1,
    "documents": 1,
    "sources": 2,
    "chunking": 2,
    "embedding": 2,
    "reranking": 2,
    "store": 2,
    "conversations": 2,
    "indexing": 3,
    "search": 3,
    "reading": 3,
    "remembering": 3,
    "embedders": 3,
    "memory": 4,
    "parts": 4,
    "answering": 4,
    "requests": 4,
    "health": 4,
    "memories": 4,
    "mending": 4,
    "forgetting": 4,
    "async_memory": 4,
    "following": 4,
    "session_flush": 4,
    "evaluation": 5,
    "tools": 5,
    "installing": 5,
    "adapters": 6,
    "surfaces": 6,
    "__init__": 4,
    "__main__": 7,
}
SAME_LAYER_MAY = {0, 4}  # values and seams refer to each other; memory and health are one thing in two files
SQL_WORDS = ("SELECT ", "INSERT ", "DELETE FROM", "CREATE TABLE", "PRAGMA ")

MODULES = sorted(SOURCE.rglob("*.py"))


def part_of(module: str) -> str:
    """Return the part of notewell that a dotted name belongs to."""
    pieces = module.split(".")
    return pieces[1] if len(pieces) > 1 else "__init__"


def imports_of(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
    return {name for name in found if name.split(".")[0] == "notewell"}


def own_part(path: Path) -> str:
    first = path.relative_to(SOURCE).parts[0]
    return first.removesuffix(".py")


def test_every_part_has_a_layer():
    assert {own_part(path) for path in MODULES} == set(LAYERS)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.relative_to(SOURCE).as_posix())
def test_imports_point_down(path):
    own = own_part(path)
    for name in imports_of(path):
        other = part_of(name)
        if other == own:
            continue
        if LAYERS[other] == LAYERS[own] and LAYERS[own] in SAME_LAYER_MAY:
            continue
        assert LAYERS[other] < LAYERS[own], f"{path.name} ({own}) must not import {name}"


def test_surfaces_use_the_public_api_only():
    allowed = {
        "__init__",
        "surfaces",
        "settings",
        "workspace",
        "types",
        "evaluation",
        "conversations",
        "tools",
        "documents",
        "errors",
        "installing",
    }
    type_only = {"privacy", "search.scoring", "store.sqlite"}  # names in annotations, imported for type checking only
    of_the_process = {"remote.retry_hooks"}  # what only the owner of the process decides
    for path in (SOURCE / "surfaces").rglob("*.py"):
        for name in imports_of(path):
            short = name.removeprefix("notewell.")
            assert part_of(name) in allowed or short in type_only | of_the_process, f"{path.name}: {name}"


def test_sql_lives_in_the_store():
    for path in MODULES:
        if own_part(path) == "store":
            continue
        strings = [
            node.value
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            if isinstance(node, ast.Constant) and isinstance(node.value, str)
        ]
        assert not [text for text in strings if text.startswith(SQL_WORDS)], path


def test_every_module_says_what_it_holds():
    for path in MODULES:
        assert ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))), path


@pytest.mark.parametrize(
    ("code", "unwanted"),
    [
        pytest.param("import notewell", {"numpy", "apsw", "click", "onnxruntime"}, id="the package alone"),
        pytest.param(
            "import notewell.memory", {"numpy", "onnxruntime", "tokenizers", "rich", "filelock"}, id="the library"
        ),
        pytest.param(
            "import notewell.surfaces.cli.search_command", {"numpy", "onnxruntime", "rich"}, id="the search command"
        ),
        pytest.param("import notewell.tools", {"numpy", "apsw", "mcp", "pydantic", "httpx"}, id="the agent tools"),
        pytest.param("import notewell.surfaces.cli.mcp_command", {"numpy", "mcp", "pydantic"}, id="the mcp command"),
        pytest.param("import notewell.adapters", {"anthropic", "agents", "langchain_core"}, id="the adapters"),
        pytest.param("import notewell.surfaces.cli.hook_command", {"numpy", "pyjson5", "mcp"}, id="the hook command"),
    ],
)
def test_imports_stay_cheap(code, unwanted):
    script = f"import sys; {code}; print(sorted(set(sys.modules) & {unwanted!r}))"
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"
