"""The packaged model: the graph agrees with the plain forward pass, and damage is noticed."""

from __future__ import annotations

import gc
import shutil
import subprocess
import sys
import weakref

import numpy as np
import pytest

from notewell.embedding.local.cold_start import MAX_TOKENS_WITHOUT_SESSION
from notewell.embedding.local.granite import MAX_TOKENS, PACK_SHA256, GraniteEmbedder, granite_model
from notewell.embedding.local.granite_graph import GraniteSession, granite_graph
from notewell.embedding.local.granite_pack import load_pack
from notewell.embedding.local.models import packaged_model_file
from notewell.embedding.local.numpy_inference import NumpyForward
from notewell.embedding.local.token_ids import WindowTokenizer
from notewell.errors import EmbedderUnavailableError

pytestmark = pytest.mark.slow

TEXTS = {
    "empty": "",
    "one word": "Hello",
    "question": "how do I reset the guest wifi password?",
    "Spanish": "¿Dónde está la biblioteca? Está en la calle mayor.",
    "Chinese": "今天天气很好，我们去公园散步吧",
    "emoji": "party 🎉🎉 tonight 😀",
    "numbers": "1234 5678 90",
    "code": "import numpy as np\nx = np.zeros((3, 4))\n" * 4,
    "table": "| a | b |\n|---|---|\n| 1 | 2 |\n" * 10,
    "prose": "The quick brown fox jumps over the lazy dog, and the dog does not mind at all. " * 22,
}


@pytest.fixture(scope="module")
def tokenizer(pack):
    return WindowTokenizer(pack.tokenizer_json, max_tokens=MAX_TOKENS)


@pytest.fixture(scope="module")
def session(pack):
    return GraniteSession(pack)


@pytest.mark.parametrize("text", [pytest.param(text, id=name) for name, text in TEXTS.items()])
def test_the_graph_agrees_with_the_plain_forward_pass(pack, tokenizer, session, text):
    forward = NumpyForward(pack)
    (window,) = tokenizer.windows(text)
    (fast,) = session.vectors([window], forward.token_sums)
    exact = forward.vector(window)
    assert fast @ exact / np.linalg.norm(fast) / np.linalg.norm(exact) > 0.999


def test_the_graph_is_small_and_always_the_same(pack):
    content, weights = granite_graph(pack)
    assert len(content) < 30_000
    assert content == granite_graph(pack)[0]
    assert sum(array.nbytes for array in weights.values()) < 12_000_000  # int8, without the vocabulary


def test_scores_meaning_rather_than_words(granite):
    note, near, far = granite.embed_documents(
        [
            "The wireless key for visitors is written on the fridge.",
            "guest wifi password",
            "The dentist moved the appointment to Thursday.",
        ]
    )
    assert note @ near > note @ far + 0.1


def test_vectors_of_this_release_stay_as_they_are(granite):
    """The first numbers of one vector, recorded: a change here must come with a change of the identity."""
    vector = granite.embed_query("guest wifi password")
    np.testing.assert_allclose(vector[:4], RECORDED, atol=2e-3)


RECORDED = [0.0329, -0.0533, -0.0251, 0.0300]


def test_both_ways_to_compute_a_vector_agree(pack):
    cold, warm = granite_model(pack), granite_model(pack)
    warm.vectors(["word " * (MAX_TOKENS_WITHOUT_SESSION + 1)])
    question = [TEXTS["question"]]
    first, second = cold.vectors(question)[0], warm.vectors(question)[0]
    assert first @ second / np.linalg.norm(first) / np.linalg.norm(second) > 0.999
    assert not np.array_equal(first, second)  # otherwise one way was tested twice


def test_a_text_over_the_limit_keeps_its_tail(granite):
    start = "The kitchen was painted blue. " * 120
    plain, longer = granite.embed_documents([start, start + "Quarterly revenue of the chip maker rose sharply. " * 120])
    tail = granite.embed_query("quarterly revenue of the chip maker")
    assert longer @ tail > plain @ tail + 0.05


def test_a_damaged_pack_is_refused(tmp_path, pack):
    path = tmp_path / "model.hmsemb"
    shutil.copyfile(packaged_model_file(), path)
    with path.open("r+b") as file:
        file.seek(20_000_000)
        byte = file.read(1)
        file.seek(20_000_000)
        file.write(bytes([byte[0] ^ 1]))
    embedder = GraniteEmbedder(path)
    with pytest.raises(EmbedderUnavailableError, match="checksum mismatch") as caught:
        embedder.embed_query("wifi")
    assert "--force-reinstall" in caught.value.hint


@pytest.mark.parametrize("content", [None, b"", b"HMSEMB01"], ids=["missing", "empty", "cut short"])
def test_a_file_that_is_no_pack_is_refused(tmp_path, content):
    path = tmp_path / "model.hmsemb"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(EmbedderUnavailableError, match="local model"):
        load_pack(path, PACK_SHA256)


def test_it_loads_again_after_close(granite):
    before = granite.embed_query("wifi")
    granite.close()
    np.testing.assert_array_equal(granite.embed_query("wifi"), before)


def test_close_releases_the_model(granite):
    granite.embed_query("wifi")
    model = weakref.ref(granite._model)
    granite.close()
    gc.collect()
    assert model() is None


def test_identity_changes_with_the_weights():
    path = packaged_model_file()
    assert GraniteEmbedder(path).identity != GraniteEmbedder(path, sha256="0" * 64).identity


def test_a_cold_query_imports_neither_onnxruntime_nor_tokenizers(pack):
    program = """
import sys
from pathlib import Path
from notewell.embedding.local.granite import GraniteEmbedder
embedder = GraniteEmbedder(Path(sys.argv[1]))
print(embedder.identity, embedder.knows("wifi"))
before = sorted({"numpy", "onnxruntime", "tokenizers"} & set(sys.modules))
embedder.embed_query("what is the guest wifi password?")
print(before, sorted({"onnxruntime", "tokenizers"} & set(sys.modules)))
"""
    done = subprocess.run(
        [sys.executable, "-c", program, str(packaged_model_file())], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[1] == "[] []"
