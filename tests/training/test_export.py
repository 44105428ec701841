from __future__ import annotations

import json

import numpy as np
import pytest
from training.export import export, float_pass, load_weights, write_card

from tests.embedding.local.exported_model import ADDED_WORDS, tiny_tokenizer, tiny_weights, write_exported_folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_exported_folder(tmp_path_factory.mktemp("export") / "tiny")


@pytest.fixture(scope="module")
def weights(folder):
    return load_weights(folder.parent / "tiny-sources" / "weights.npz")


def unit(vector):
    return vector / np.linalg.norm(vector)


TOKENS = {
    "short": [0, 45, 99, 2],
    "long": [0, *(np.arange(400) * 7 % 250 + 4).tolist(), 2],
    "the largest": [0, *[270] * 510, 2],
}


@pytest.mark.slow
@pytest.mark.parametrize("tokens", TOKENS.values(), ids=TOKENS)
def test_the_exported_graph_computes_what_was_trained(folder, weights, tokens):
    from notewell.embedding.local.inference import Session
    from notewell.embedding.local.numpy_inference import NumpyGraph

    trained = unit(float_pass(weights, tokens))
    plain = unit(NumpyGraph(folder / "model.onnx").vector(tokens))
    integers = unit(Session(folder / "model.onnx").run("sentence_embedding", {"input_ids": np.asarray([tokens])})[0])
    assert trained @ plain > 0.998  # weights of 8 bits
    assert trained @ integers > 0.99  # and activations of 8 bits


@pytest.mark.slow
def test_the_same_input_gives_the_same_bytes(folder, tmp_path):
    again = write_exported_folder(tmp_path / "tiny")
    for name in ("model.onnx", "tokenizer.json", "notewell.json"):
        assert (again / name).read_bytes() == (folder / name).read_bytes()


def test_ids_that_the_library_reads_differently_are_refused(tmp_path):
    tokenizer = tiny_tokenizer()
    tokenizer["added_tokens"][-2]["content"] = "in"  # the vocabulary has it: later ids move
    (tmp_path / "tokenizer.json").write_text(json.dumps(tokenizer), "utf-8")
    np.savez(tmp_path / "weights.npz", **tiny_weights(len(tokenizer["model"]["vocab"]) + len(ADDED_WORDS)))
    with pytest.raises(SystemExit, match="2 added tokens get another id"):
        export(tmp_path / "weights.npz", tmp_path / "tokenizer.json", tmp_path / "out")


def test_rows_that_do_not_fit_the_tokenizer_are_refused(tmp_path):
    (tmp_path / "tokenizer.json").write_text(json.dumps(tiny_tokenizer()), "utf-8")
    np.savez(tmp_path / "weights.npz", **tiny_weights(10))
    with pytest.raises(SystemExit, match=r"tokens, .* has 10 rows"):
        export(tmp_path / "weights.npz", tmp_path / "tokenizer.json", tmp_path / "out")


def test_the_card_gets_the_checksums(tmp_path):
    card = tmp_path / "README.md"
    card.write_text("# Model\n<!-- export -->\nold\n<!-- /export -->\nrest\n")
    write_card(card, {"model.onnx": "abc"}, layers=6, tokens=90588)
    assert card.read_text() == (
        "# Model\n<!-- export -->\n- 6 layers, 90,588 tokens\n- `model.onnx`: sha256 `abc`\n<!-- /export -->\nrest\n"
    )
