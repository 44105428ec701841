"""What every embedder must do, run against each of them."""

from __future__ import annotations

import importlib.util
import threading
from collections.abc import Callable, Iterator
from dataclasses import FrozenInstanceError
from pathlib import Path

import numpy as np
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
from tests.embedding.local.tiny_gguf import write_bert
from tests.fakes.openai import FakeOpenAI

Opener = Callable[[], Embedder]

TEXTS = [
    "the guest wifi password is lighthouse",
    "a note",
    "",
    "what is the password : the guest wifi " * 20,
    "b",
    "the lighthouse " * 60,
    "the guest wifi password is lighthouse",
]
ODD_TEXTS = [
    pytest.param("", id="empty"),
    pytest.param(" \n\t ", id="white space"),
    pytest.param("a\x00b", id="NUL"),
    pytest.param("👨‍👩‍👧 🎉", id="emoji"),
    pytest.param("lone \udc80 surrogate", id="lone surrogate"),
    pytest.param("密码是什么", id="Chinese"),
    pytest.param("[CLS] <s> </s> <mask> [SEP]", id="special tokens spelled out"),
    pytest.param("%PDF-1.7 \x01\x02\x03 " * 20, id="binary"),
]


def open_granite(_: Path) -> Embedder:
    try:
        return GraniteEmbedder(packaged_model_file())
    except EmbedderUnavailableError as error:
        pytest.skip(f"the packaged model is not installed: {error}")


def open_onnx_folder(place: Path) -> Embedder:
    from tests.embedding.local.sentence_folder import write_sentence_folder  # skips where onnx is missing

    return OnnxFolderEmbedder(write_sentence_folder(place / "tiny"))


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
    "gguf": open_gguf,
}


@pytest.fixture(scope="module", params=[pytest.param(opener, id=name) for name, opener in OPENERS.items()])
def opener(request, tmp_path_factory) -> Opener:
    place = tmp_path_factory.mktemp("model")
    return lambda: request.param(place)


@pytest.fixture(scope="module")
def embedder(opener: Opener) -> Iterator[Embedder]:
    embedder = opener()
    yield embedder
    embedder.close()


def assert_unit_rows(rows, count, embedder):
    assert rows.shape == (count, embedder.identity.dimensions)
    assert rows.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-5)


def test_rows_are_unit_float32_in_the_order_of_the_texts(embedder):
    rows = embedder.embed_documents(TEXTS)
    assert_unit_rows(rows, len(TEXTS), embedder)
    np.testing.assert_allclose(rows[0], rows[-1], atol=1e-6)
    assert rows[0] @ rows[1] < 0.999


def test_no_texts_give_no_rows(embedder):
    rows = embedder.embed_documents([])
    assert rows.shape == (0, embedder.identity.dimensions)
    assert rows.dtype == np.float32


def test_a_query_is_one_row(embedder):
    assert embedder.embed_query("guest wifi").shape == (embedder.identity.dimensions,)


def test_one_equals_many(embedder):
    for text, row in zip(TEXTS, embedder.embed_documents(TEXTS), strict=True):
        assert embedder.embed_query(text) @ row > 0.999
        np.testing.assert_allclose(embedder.embed_documents([text])[0], row, atol=1e-3)


def test_neighbours_do_not_change_a_vector(embedder):
    forwards = embedder.embed_documents(TEXTS)
    backwards = embedder.embed_documents(TEXTS[::-1])[::-1]
    np.testing.assert_allclose(forwards, backwards, atol=1e-3)


def test_a_fresh_embedder_gives_the_same_vectors(opener, embedder):
    fresh = opener()
    assert fresh.identity == embedder.identity
    cosines = (fresh.embed_documents(TEXTS) * embedder.embed_documents(TEXTS)).sum(axis=1)
    assert cosines.min() > 0.999
    fresh.close()


@pytest.mark.parametrize("text", ODD_TEXTS)
def test_odd_texts_have_vectors(embedder, text):
    assert_unit_rows(embedder.embed_documents([text]), 1, embedder)
    assert_unit_rows(embedder.embed_query(text)[np.newaxis], 1, embedder)
    assert embedder.knows(text) in {True, False}


def test_a_text_of_100_kilobytes_has_a_vector(embedder):
    text = "password responsibilities " * 3900  # words that are one token each: the longest way for the fewest windows
    assert len(text) > 100_000
    rows = embedder.embed_documents([text, "password responsibilities"])
    assert_unit_rows(rows, 2, embedder)
    assert rows[0] @ rows[1] > 0.5


def test_threads_share_it(opener):
    embedder = opener()
    expected = embedder.embed_documents(TEXTS)
    embedder.close()
    answers: list[np.ndarray] = []
    start = threading.Barrier(4)

    def ask() -> None:
        start.wait(timeout=30)
        answers.append(embedder.embed_documents(TEXTS))

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    embedder.close()
    assert len(answers) == 4
    for answer in answers:
        assert (answer * expected).sum(axis=1).min() > 0.999


def test_it_may_be_closed_twice_and_before_use(opener):
    embedder = opener()
    embedder.close()
    embedder.close()


def test_identity_is_stable_and_frozen(opener, embedder):
    identity = embedder.identity
    embedder.embed_query("anything")
    assert embedder.identity == identity == opener().identity
    assert identity.provider
    assert identity.model
    with pytest.raises(FrozenInstanceError):
        identity.dimensions = 1


def test_says_how_to_treat_its_vectors(embedder):
    assert embedder.quantization in {"bits", "int8"}
    low, high = embedder.cosine_range
    assert -1 <= low < high <= 1


def test_knows_plain_english(embedder):
    assert embedder.knows("the guest wifi password is lighthouse")


def test_identities_of_all_embedders_differ(tmp_path):
    identities = [opener(tmp_path).identity for opener in OPENERS.values()]
    assert len({str(identity) for identity in identities}) == len(identities)
