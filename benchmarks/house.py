"""`python -m benchmarks.house [SRC]`: counts modules, lines, importers and call depth of a checkout.

SRC is another checkout of the repository; without it, this one is measured. To compare two states:

    git worktree add ../before <commit>
    python -m benchmarks.house ../before
    python -m benchmarks.house
"""

from __future__ import annotations

import argparse
import ast
import io
import json
import os
import statistics
import subprocess
import sys
import tempfile
import tokenize
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

PACKAGE = "notewell"
SMALL = 40  # lines; a module this short should be a seam
OPTION = "fusion"  # a search option that every surface offers
WALKS = Path(__file__).with_name("walks.py")
NOT_CODE = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}


@dataclass
class Module:
    """One source file: its size, and the modules of the package that import it."""

    name: str
    lines: int
    code_lines: int
    tree: ast.Module
    is_package: bool  # its __init__.py
    importers: set[str] = field(default_factory=set)


def main() -> None:
    """Measure a checkout and print one line a figure, or JSON."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.house", description=__doc__.partition("\n")[0])
    parser.add_argument("src", nargs="?", default=Path(__file__).parents[1], type=Path, metavar="SRC")
    parser.add_argument("--option", default=OPTION, help=f"the search option to look for (default: {OPTION})")
    parser.add_argument("--list", action="store_true", help="also list the modules and frames behind the figures")
    parser.add_argument("--json", action="store_true", help="print JSON")
    chosen = parser.parse_args()
    src = package_parent(chosen.src)
    modules = read_modules(src / PACKAGE)
    figures, lists = static_figures(modules, src, option=chosen.option)
    for walk, frames in run_walks(src).items():
        if isinstance(frames, list):
            figures[f"frames: {walk}"], lists[f"frames: {walk}"] = len(frames), frames
        else:
            figures[walk] = frames
    if chosen.json:
        print(json.dumps(figures | ({"lists": lists} if chosen.list else {}), indent=2))
        return
    width = max(map(len, figures))
    for name, value in figures.items():
        print(f"{name:<{width}}  {value:,}" if isinstance(value, int) else f"{name:<{width}}  {value}")
        for item in lists.get(name, ()) if chosen.list else ():
            print(f"    {item}")


def package_parent(checkout: Path) -> Path:
    """Return the folder that holds the package: SRC itself, or `src` in it."""
    for folder in (checkout / "src", checkout):
        if (folder / PACKAGE).is_dir():
            return folder.resolve()
    raise SystemExit(f"there is no package {PACKAGE} in {checkout} or {checkout / 'src'}")


def read_modules(package: Path) -> dict[str, Module]:
    """Return every module of the package by its dotted name, with its importers."""
    modules = {}
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package.parent).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        text = path.read_text(encoding="utf-8")
        tree = ast.parse(text)
        modules[name] = Module(name, text.count("\n"), count_code_lines(text, tree), tree, parts[-1] == "__init__")
    for module in modules.values():
        for imported in imported_names(module.tree):
            if imported in modules and imported != module.name:
                modules[imported].importers.add(module.name)
    return modules


def imported_names(tree: ast.Module) -> set[str]:
    """Return what is imported anywhere in the module; `from a import b` may mean the module a.b, or a name in a."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.startswith(f"{PACKAGE}."):
            names |= {node.value.partition(":")[0]}  # imported by name when it is needed
    return names


def count_code_lines(text: str, tree: ast.Module) -> int:
    """Return how many lines hold code: no blank line, comment or docstring."""
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in NOT_CODE:
            lines |= set(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and ast.get_docstring(
            node, clean=False
        ):
            docstring = node.body[0]
            lines -= set(range(docstring.lineno, (docstring.end_lineno or docstring.lineno) + 1))
    return len(lines)


def static_figures(
    modules: dict[str, Module], src: Path, *, option: str
) -> tuple[dict[str, object], dict[str, list[str]]]:
    """Return what can be counted without running anything, and the modules behind it."""
    sizes = [module.lines for module in modules.values()]
    largest = max(modules.values(), key=lambda module: module.lines)
    lists: defaultdict[str, list[str]] = defaultdict(list)
    with_one_importer = "modules with one importer (packages apart)"
    small = f"modules of {SMALL} lines or fewer (packages apart)"
    naming_option = f"modules that name `{option}`"
    for module in modules.values():
        if len(module.importers) == 1 and not module.is_package:
            lists[with_one_importer].append(f"{module.name} <- {next(iter(module.importers))}")
        if module.lines <= SMALL and not module.is_package:
            lists[small].append(f"{module.name} ({module.lines})")
        if names_option(module.tree, option):
            lists[naming_option].append(module.name)
    lists["files at the top"] = sorted(path.name for path in (src / PACKAGE).glob("*.py"))
    figures: dict[str, object] = {
        "modules": len(modules),
        "lines": sum(sizes),
        "lines of code (no blanks, comments, docstrings)": sum(module.code_lines for module in modules.values()),
        "median module (lines)": round(statistics.median(sizes)),
        "largest module (lines)": largest.lines,
        **{name: len(lists[name]) for name in (with_one_importer, small, "files at the top", naming_option)},
    }
    lists["largest module (lines)"] = [largest.name]
    return figures, lists


def names_option(tree: ast.Module, option: str) -> bool:
    """Tell whether the module names an option: as a parameter, a field, an argument, an attribute or a key."""
    for node in ast.walk(tree):
        names = {
            ast.arg: lambda n: n.arg,
            ast.keyword: lambda n: n.arg,
            ast.Attribute: lambda n: n.attr,
            ast.Name: lambda n: n.id,
            ast.Constant: lambda n: n.value,
        }.get(type(node))
        if names and names(node) in {option, f"--{option}", f"query.{option}"}:
            return True
    return False


def run_walks(src: Path) -> dict[str, object]:
    """Return the frames of the four walks and the number of settings, measured in a process of their own."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("NOTEWELL_")}
    with tempfile.TemporaryDirectory(prefix="notewell-house-") as folder:
        done = subprocess.run(
            [sys.executable, "-P", str(WALKS), folder],
            env=env | {"PYTHONPATH": str(src), "NOTEWELL_CONFIG": os.devnull},
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode:
        raise SystemExit(f"the walks through {src} failed:\n{done.stderr}")
    return json.loads(done.stdout)


if __name__ == "__main__":
    main()
