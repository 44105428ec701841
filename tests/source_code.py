"""Reads the modules of the package once for all tests that look at their source."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

SOURCE = Path(__file__).parent.parent / "src" / "notewell"
MODULES = sorted(SOURCE.rglob("*.py"))


@dataclass(frozen=True, slots=True)
class Module:
    """What the tests ask of a module; its syntax tree would fill the memory of the test process."""

    docstring: str
    imports: frozenset[str]  # dotted names of modules of the package
    constants: tuple[str, ...]  # every string
    readable: tuple[tuple[int, str], ...]  # line and text of strings that hold a blank; f-strings whole


@cache
def module_at(path: Path) -> Module:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    nodes = list(ast.walk(tree))
    strings = [node for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    return Module(
        docstring=ast.get_docstring(tree) or "",
        imports=frozenset(name for name in _imported(nodes) if name.split(".")[0] == "notewell"),
        constants=tuple(str(node.value) for node in strings),
        readable=tuple((line, text) for line, text in _readable(nodes) if " " in text),
    )


def _imported(nodes: list[ast.AST]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module


def _readable(nodes: list[ast.AST]) -> Iterator[tuple[int, str]]:
    inside = {id(part) for node in nodes if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in nodes:
        if isinstance(node, ast.JoinedStr):
            parts = (str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)
            yield node.lineno, "".join(parts)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inside:
            yield node.lineno, node.value
