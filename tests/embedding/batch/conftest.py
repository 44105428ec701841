"""Providers on the loopback interface, a small workspace, and what an index must hold in the end."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from notewell import Memory
from notewell.embedding.jobs import JobRecord, Ledger
from notewell.settings import BatchSettings, CacheSettings, RemoteSettings, Settings, SyncSettings
from notewell.types import hash_text
from tests.fakes.providers import PROVIDERS, FakeProvider, vector_of

WITH_JOBS = ("openai", "gemini", "voyage", "mistral")
NOTES = 6
SIDES = {"openai": "", "gemini": "RETRIEVAL_DOCUMENT", "voyage": "document", "mistral": ""}
MODELS = {
    "openai": "text-embedding-3-small",
    "gemini": "gemini-embedding-001",
    "voyage": "voyage-4-large",
    "mistral": "mistral-embed",
}
MOST_CHUNK_IDS = 1000


def write_notes(folder: Path, count: int = NOTES) -> Path:
    """Make a workspace in which every note is one chunk."""
    (folder / "memory").mkdir(parents=True, exist_ok=True)
    for number in range(count):
        text = f"# Note {number}\n\nThe harbour keeps subject{number} in shed {number * 7}.\n"
        (folder / "memory" / f"note{number}.md").write_text(text, encoding="utf-8")
    return folder


@dataclass
class Harbour:
    """One workspace and one provider."""

    fake: FakeProvider
    workspace: Path
    memories: ExitStack

    def settings(self, *, cache: bool = True, on_search: bool = False, **batch: Any) -> Settings:
        # Nobody waits for real here: jobs of the fakes are done at the second look.
        remote = RemoteSettings(
            base_url=self.fake.base_url, api_key=self.fake.key, batch=BatchSettings(**{"poll_interval_ms": 2, **batch})
        )
        return Settings(
            provider=self.fake.name,
            remote=remote,
            cache=CacheSettings(enabled=cache),
            sync=SyncSettings(on_search=on_search),
        )

    def open(self, **options: Any) -> Memory:
        return self.memories.enter_context(Memory(self.workspace, self.settings(**options)))

    @property
    def ledger(self) -> list[JobRecord]:
        with Memory(self.workspace, self.settings()) as memory:
            return Ledger(memory._components.folder.path).records()

    @property
    def jobs(self) -> int:
        """How many jobs the provider was asked to make, and would want to be paid for."""
        return len(self.fake.book.jobs)  # type: ignore[attr-defined]  # every fake with jobs has a book

    def texts_embedded_at_once(self) -> int:
        """How many texts went the ordinary way."""
        return sum(
            len(request.json["requests"] if self.fake.name == "gemini" else request.json["input"])
            for request in self.fake.requests_to("embed")
        )

    def check_complete(self, memory: Memory, chunks: int = NOTES) -> None:
        """Fail unless every chunk has the vector of its own text."""
        with memory._components.index.use() as store:
            assert store is not None
            assert store.verify() == []
            with store.reading() as snapshot:
                counts = snapshot.counts()
                found = snapshot.chunks(range(1, MOST_CHUNK_IDS))
                texts = [f"{chunk.context}\n{chunk.text}" if chunk.context else chunk.text for chunk in found.values()]
                vectors = snapshot.known_vectors([hash_text(text) for text in texts])
        assert (counts.chunks, counts.pending, counts.embedded) == (chunks, 0, chunks)
        for text in texts:
            expected = vector_of(text, self.fake.dimensions, side=SIDES[self.fake.name], model=MODELS[self.fake.name])
            assert float(np.dot(vectors[hash_text(text)], expected)) > 0.999, text


@pytest.fixture(params=WITH_JOBS)
def harbour(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Harbour]:
    with PROVIDERS[request.param]() as fake, ExitStack() as memories:
        yield Harbour(fake, write_notes(tmp_path / "notes"), memories)


@pytest.fixture
def openai_harbour(tmp_path: Path) -> Iterator[Harbour]:
    with PROVIDERS["openai"]() as fake, ExitStack() as memories:
        yield Harbour(fake, write_notes(tmp_path / "notes"), memories)
