"""What every embedder must do, run against each of them."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path

import pytest

from notewell.embedding.hashing import HashingEmbedder
from notewell.embedding.http_calls import missing_packages
from notewell.embedding.local.gguf import FileFacts, GgufEmbedder
from notewell.embedding.local.granite import GraniteEmbedder
from notewell.embedding.local.models import packaged_model_file
from notewell.embedding.local.onnx_folder import OnnxFolderEmbedder
from notewell.embedding.providers import open_openai
from notewell.errors import EmbedderUnavailableError
from notewell.protocols import Embedder
from notewell.settings import RemoteSettings, Settings
from notewell.testing import EmbedderContract
from tests.embedding.local.tiny_gguf import write_bert
from tests.fakes.openai import FakeOpenAI


def open_granite(_: Path) -> Embedder:
    try:
        return GraniteEmbedder(packaged_model_file())
    except EmbedderUnavailableError as error:
        pytest.skip(f"the packaged model is not installed: {error}")


def open_onnx_folder(place: Path) -> Embedder:
    from tests.embedding.local.sentence_folder import write_sentence_folder  # skips where onnx is missing

    folder = place / "tiny"
    return OnnxFolderEmbedder(folder if folder.exists() else write_sentence_folder(folder))


def open_exported(place: Path) -> Embedder:
    from tests.embedding.local.exported_model import write_exported_folder  # skips where onnx is missing

    folder = place / "exported"
    return OnnxFolderEmbedder(folder if folder.exists() else write_exported_folder(folder))


def open_memory_model(_: Path) -> Embedder:
    from tests.embedding.local.exported_model import shipped_folder  # skips where it is not installed

    return OnnxFolderEmbedder(shipped_folder())


def open_gguf(place: Path) -> Embedder:
    if importlib.util.find_spec("llama_cpp") is None:
        pytest.skip("llama-cpp-python is not installed (the extra `gguf`)")
    return GgufEmbedder(write_bert(place / "tiny.gguf"), FileFacts(place))


class HashingOpenAI(FakeOpenAI):
    """OpenAI on the loopback interface, with vectors that know which words two texts share."""

    def vectors(self, texts, dimensions, **_):
        return list(HashingEmbedder(dimensions).embed_documents(texts))


REMOTE = HashingOpenAI()


@pytest.fixture(scope="module", autouse=True)
def remote_server() -> Iterator[None]:
    with REMOTE:
        yield


def open_remote(_: Path) -> Embedder:
    if missing_packages():
        pytest.skip("httpx and stamina are not installed (the extra `remote`)")
    return open_openai(Settings(provider="openai", remote=RemoteSettings(base_url=REMOTE.base_url, api_key=REMOTE.key)))


OPENERS = {
    "remote": open_remote,
    "granite": open_granite,
    "hashing": lambda _: HashingEmbedder(),
    "onnx folder": open_onnx_folder,
    "exported": open_exported,
    "notewell-memory": open_memory_model,
    "gguf": open_gguf,
}


class TestRemote(EmbedderContract):
    open_embedder = staticmethod(OPENERS["remote"])


@pytest.mark.slow
class TestGranite(EmbedderContract):
    open_embedder = staticmethod(OPENERS["granite"])


class TestHashing(EmbedderContract):
    open_embedder = staticmethod(OPENERS["hashing"])


class TestOnnxFolder(EmbedderContract):
    open_embedder = staticmethod(OPENERS["onnx folder"])


class TestExported(EmbedderContract):
    open_embedder = staticmethod(OPENERS["exported"])


@pytest.mark.slow
class TestMemoryModel(EmbedderContract):
    open_embedder = staticmethod(OPENERS["notewell-memory"])


class TestGguf(EmbedderContract):
    open_embedder = staticmethod(OPENERS["gguf"])


@pytest.mark.slow
def test_identities_of_all_embedders_differ(tmp_path):
    identities = [opener(tmp_path).identity for opener in OPENERS.values()]
    assert len({str(identity) for identity in identities}) == len(identities)
