from __future__ import annotations

import json
import shutil

import numpy as np
import pytest

from notewell.embedding.local.onnx_folder import OnnxFolderEmbedder
from notewell.embedding.unit_vectors import MIN_COSINE_SPAN
from notewell.errors import EmbedderUnavailableError

from .sentence_folder import DIMENSIONS, token_ids, word_vectors, write_sentence_folder

TEXT = "the guest wifi password is lighthouse"


def unit(vector):
    return vector / np.linalg.norm(vector)


@pytest.mark.parametrize(
    ("pooling", "expected"),
    [
        pytest.param({}, "mean", id="mean is the default"),
        pytest.param({"pooling_mode_mean_tokens": True, "pooling_mode_cls_token": False}, "mean", id="mean"),
        pytest.param({"pooling_mode_mean_tokens": False, "pooling_mode_cls_token": True}, "cls", id="cls"),
        pytest.param({"pooling_mode": "cls"}, "cls", id="cls, short form"),
    ],
)
def test_pooling(tmp_path, pooling, expected):
    rows = word_vectors()[token_ids(TEXT)]
    vector = OnnxFolderEmbedder(write_sentence_folder(tmp_path, pooling=pooling)).embed_query(TEXT)
    np.testing.assert_allclose(vector, unit(rows[0] if expected == "cls" else rows.mean(axis=0)), atol=1e-5)


@pytest.mark.parametrize(
    "options",
    [
        pytest.param({"pooled_output": True}, id="pooled within the graph"),
        pytest.param({"inputs": ("input_ids",)}, id="ids only"),
        pytest.param({"inputs": ("input_ids", "attention_mask")}, id="no token types"),
        pytest.param({"inputs": ("input_ids", "attention_mask", "position_ids")}, id="positions"),
        pytest.param({"integers": "INT32"}, id="32-bit inputs"),
        pytest.param({"model_file": "onnx/model.onnx"}, id="model in a folder of its own"),
        pytest.param({"external_data": "model.onnx_data"}, id="weights beside the graph"),
    ],
)
def test_kinds_of_export(tmp_path, options):
    embedder = OnnxFolderEmbedder(write_sentence_folder(tmp_path, **options))
    expected = unit(word_vectors()[token_ids(TEXT)].mean(axis=0))
    np.testing.assert_allclose(embedder.embed_query(TEXT), expected, atol=1e-5)


def test_prompts_go_in_front(tmp_path):
    folder = write_sentence_folder(tmp_path, prompts={"query": "query : ", "document": "passage : "})
    plain = OnnxFolderEmbedder(write_sentence_folder(tmp_path / "plain"))
    embedder = OnnxFolderEmbedder(folder)
    np.testing.assert_allclose(embedder.embed_query("wifi"), plain.embed_query("query : wifi"), atol=1e-6)
    np.testing.assert_allclose(embedder.embed_documents(["wifi"])[0], plain.embed_query("passage : wifi"), atol=1e-6)


def test_the_limit_of_the_folder_counts_and_nothing_is_lost(tmp_path):
    embedder = OnnxFolderEmbedder(write_sentence_folder(tmp_path, max_seq_length=10))
    windows = ["a " * 8, "b " * 8]
    expected = unit(sum(unit(word_vectors()[token_ids(window)].mean(axis=0)) for window in windows))
    np.testing.assert_allclose(embedder.embed_query("".join(windows)), expected, atol=1e-5)


@pytest.mark.parametrize(
    ("text", "known"),
    [
        pytest.param("the guest wifi password", True, id="known words"),
        pytest.param("the guest wifi zebra password", True, id="one unknown word"),
        pytest.param("совсем другой язык", False, id="nothing known"),
        pytest.param("", True, id="empty"),
    ],
)
def test_knows_what_its_vocabulary_covers(tmp_path, text, known):
    assert OnnxFolderEmbedder(write_sentence_folder(tmp_path)).knows(text) is known


def test_the_cosine_range_is_measured(tmp_path):
    low, high = OnnxFolderEmbedder(write_sentence_folder(tmp_path)).cosine_range
    assert -1 <= low <= high - MIN_COSINE_SPAN + 1e-6 <= 1


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"seed": 1}, id="weights"),
        pytest.param({"pooling": {"pooling_mode_cls_token": True}}, id="pooling"),
        pytest.param({"prompts": {"query": "query : "}}, id="query prompt"),
        pytest.param({"prompts": {"document": "passage : "}}, id="document prompt"),
        pytest.param({"max_seq_length": 31}, id="limit"),
    ],
)
def test_identity_changes_with(tmp_path, change):
    before = OnnxFolderEmbedder(write_sentence_folder(tmp_path / "one" / "model")).identity
    assert OnnxFolderEmbedder(write_sentence_folder(tmp_path / "two" / "model", **change)).identity != before


@pytest.mark.parametrize("name", ["model.onnx_data", "model.onnx.data", "weights.bin"])
def test_identity_covers_weights_beside_the_graph(tmp_path, name):
    folders = [
        write_sentence_folder(tmp_path / place / "model", seed=seed, external_data=name)
        for place, seed in [("one", 0), ("two", 1)]
    ]
    assert (folders[0] / "model.onnx").read_bytes() == (folders[1] / "model.onnx").read_bytes()
    assert OnnxFolderEmbedder(folders[0]).identity != OnnxFolderEmbedder(folders[1]).identity


def test_identity_leaves_out_files_the_graph_does_not_use(tmp_path):
    folder = write_sentence_folder(tmp_path)
    before = OnnxFolderEmbedder(folder).identity
    (folder / "pytorch_model.bin").write_bytes(b"the same model for another program")
    (folder / "README.md").write_text("About this model", encoding="utf-8")
    assert OnnxFolderEmbedder(folder).identity == before


def test_identity_covers_the_tokenizer(tmp_path):
    folder = write_sentence_folder(tmp_path)
    before = OnnxFolderEmbedder(folder).identity
    tokenizer = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))
    tokenizer["model"]["vocab"]["zebra"] = 5
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer), encoding="utf-8")
    assert OnnxFolderEmbedder(folder).identity != before


def test_identity_does_not_depend_on_the_place(tmp_path):
    one = write_sentence_folder(tmp_path / "one" / "model")
    shutil.copytree(one, tmp_path / "two" / "model")
    assert OnnxFolderEmbedder(one).identity == OnnxFolderEmbedder(tmp_path / "two" / "model").identity


@pytest.mark.parametrize(
    ("file", "content"),
    [
        pytest.param("model.onnx", None, id="no model"),
        pytest.param("model.onnx", "not a graph", id="broken model"),
        pytest.param("tokenizer.json", None, id="no tokenizer"),
        pytest.param("tokenizer.json", "{}", id="broken tokenizer"),
        pytest.param("1_Pooling/config.json", "{", id="broken JSON"),
        pytest.param("1_Pooling/config.json", "[]", id="JSON of another kind"),
        pytest.param("1_Pooling/config.json", None, id="unknown dimensions"),
        pytest.param("1_Pooling/config.json", '{"word_embedding_dimension": 5}', id="wrong dimensions"),
        pytest.param("1_Pooling/config.json", '{"pooling_mode_max_tokens": true}', id="pooling not supported"),
        pytest.param("1_Pooling/config.json", '{"include_prompt": false}', id="pooling without the prompt"),
        pytest.param("config_sentence_transformers.json", '{"prompts": ["x"]}', id="prompts without names"),
        pytest.param("sentence_bert_config.json", '{"max_seq_length": 2}', id="no room for a text"),
        pytest.param("modules.json", '[{"type": "sentence_transformers.models.Dense"}]', id="a step is missing"),
    ],
)
def test_broken_folders_are_named(tmp_path, file, content):
    folder = write_sentence_folder(tmp_path)
    if content is None:
        (folder / file).unlink()
    else:
        (folder / file).write_text(content, encoding="utf-8")
    with pytest.raises(EmbedderUnavailableError) as caught:
        OnnxFolderEmbedder(folder).embed_query("wifi")
    assert file.rpartition("/")[2] in f"{caught.value.message} {caught.value.hint}"
    assert caught.value.hint


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(EmbedderUnavailableError, match="does not exist"):
        OnnxFolderEmbedder(tmp_path / "nowhere")


def test_a_graph_with_other_inputs(tmp_path):
    folder = write_sentence_folder(tmp_path, inputs=("input_ids", "pixel_values"))
    with pytest.raises(EmbedderUnavailableError, match="pixel_values"):
        OnnxFolderEmbedder(folder).embed_query("wifi")


def test_dimensions_are_known_from_the_configuration_of_the_transformer(tmp_path):
    folder = write_sentence_folder(tmp_path)
    shutil.rmtree(folder / "1_Pooling")
    (folder / "config.json").write_text(json.dumps({"hidden_size": DIMENSIONS}), encoding="utf-8")
    assert OnnxFolderEmbedder(folder).identity.dimensions == DIMENSIONS
