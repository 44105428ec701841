from __future__ import annotations

from collections.abc import Iterator

import pytest

from notewell.embedding.local.granite import PACK_SHA256, GraniteEmbedder
from notewell.embedding.local.granite_pack import ModelPack, load_pack
from notewell.embedding.local.models import packaged_model_file
from notewell.errors import EmbedderUnavailableError


@pytest.fixture(scope="session")
def pack() -> ModelPack:
    try:
        return load_pack(packaged_model_file(), PACK_SHA256)
    except EmbedderUnavailableError as error:
        pytest.skip(f"the packaged model is not installed: {error}")


@pytest.fixture
def granite(pack: ModelPack) -> Iterator[GraniteEmbedder]:
    embedder = GraniteEmbedder(packaged_model_file())
    yield embedder
    embedder.close()
