"""Opens embedders and memories that talk to a fake provider."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from notewell import Memory
from notewell.embedding.providers.embedder import RemoteEmbedder
from notewell.embedding.selection import open_provider
from notewell.settings import RemoteSettings, Settings
from tests.fakes.providers import FakeProvider


def settings_for(fake: FakeProvider, *, model: str = "", **remote: Any) -> Settings:
    reach = RemoteSettings(base_url=fake.base_url, api_key="" if fake.name == "ollama" else fake.key)
    return Settings(provider=fake.name, model=model, remote=replace(reach, **remote))


def open_embedder(fake: FakeProvider, *, model: str = "", **remote: Any) -> RemoteEmbedder:
    opened = open_provider(fake.name, settings_for(fake, model=model, **remote))
    assert isinstance(opened, RemoteEmbedder)
    return opened


def open_memory(workspace: Path, fake: FakeProvider, **overrides: Any) -> Memory:
    reach: dict[str, Any] = {"provider": fake.name, "remote__base_url": fake.base_url}
    if fake.name != "ollama":
        reach["remote__api_key"] = fake.key
    return Memory.open(workspace, **{**reach, **overrides})
