"""The packaged model `notewell-memory`, and what happens around it when it is broken, missing or new."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys

import numpy as np
import pytest

from notewell import Memory
from notewell.embedding.local import models
from notewell.embedding.local.cold_start import MAX_TOKENS_WITHOUT_SESSION
from notewell.embedding.local.inference import Session, products_saturate
from notewell.embedding.local.numpy_inference import NumpyGraph
from notewell.embedding.local.onnx_folder import OnnxFolderEmbedder
from notewell.embedding.local.token_ids import WindowTokenizer
from notewell.embedding.selection import select_embedder
from notewell.errors import EmbedderUnavailableError
from notewell.settings import Settings

from .exported_model import REPOSITORY_FOLDER, shipped_folder, write_exported_folder

GRANITE = "granite-embedding-30m-english"
TEXTS = {
    "question": "what is the guest wifi password?",
    "German": "Wo liegt der Ersatzschlüssel für den Fahrradkeller?",
    "Chinese": "备用钥匙放在哪里了？我的自行车在银行旁边。",
    "note": "# Deploys\n\n- No deploys after 15:00.\n\n| day | who |\n|---|---|\n| Mon | Ada |\n" * 8,
}


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    return write_exported_folder(tmp_path_factory.mktemp("model") / "notewell_memory")


@pytest.fixture(scope="module", params=["exported", "shipped"])
def folder(request):
    return request.getfixturevalue("exported") if request.param == "exported" else shipped_folder()


@pytest.fixture
def installed(exported, tmp_path, monkeypatch):
    """A copy of a tiny model where the package would be."""
    folder = tmp_path / "installed" / "notewell_memory"
    shutil.copytree(exported, folder)
    monkeypatch.setattr(models, "memory_model_folder", lambda: folder)
    return folder


def cosine(first, second):
    return first @ second / np.linalg.norm(first) / np.linalg.norm(second)


# --- the forward pass -----------------------------------------------------------------------------


def float_session(model_file):
    """Return a session of the same weights with floating-point products throughout."""
    import onnx
    from onnx import helper, numpy_helper

    model = onnx.load(model_file)
    tensors = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    nodes = []
    for node in model.graph.node:
        if node.op_type == "DynamicQuantizeLinear":
            nodes.append(helper.make_node("Identity", node.input, node.output[:1]))
        elif node.op_type == "MatMulIntegerToFloat":
            name = f"{node.output[0]}.floats"
            values = tensors[node.input[1]].astype(np.float32) * tensors[node.input[3]]
            model.graph.initializer.append(numpy_helper.from_array(values, name))
            bias = list(node.input[6:7])
            product = f"{node.output[0]}.product" if bias else node.output[0]
            nodes.append(helper.make_node("MatMul", [node.input[0], name], [product]))
            nodes += [helper.make_node("Add", [product, *bias], node.output)] if bias else []
        else:
            nodes.append(node)
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    return Session(model.SerializeToString())


@pytest.mark.slow
def test_the_numpy_pass_agrees_with_the_dequantised_file(folder):
    reference, graph = float_session(folder / "model.onnx"), NumpyGraph(folder / "model.onnx")
    tokenizer = WindowTokenizer((folder / "tokenizer.json").read_bytes(), max_tokens=512)
    for text in TEXTS.values():
        tokens = tokenizer.windows(text)[0]
        expected = reference.run("sentence_embedding", {"input_ids": np.asarray([tokens])})[0]
        found = graph.vector(tokens)
        np.testing.assert_allclose(found / np.linalg.norm(found), expected / np.linalg.norm(expected), atol=1e-3)


@pytest.mark.slow
def test_integer_products_keep_the_direction(folder):
    session, graph = Session(folder / "model.onnx"), NumpyGraph(folder / "model.onnx")
    tokenizer = WindowTokenizer((folder / "tokenizer.json").read_bytes(), max_tokens=512)
    for text in TEXTS.values():
        tokens = tokenizer.windows(text)[0]
        integers = session.run("sentence_embedding", {"input_ids": np.asarray([tokens])})[0]
        assert cosine(integers, graph.vector(tokens)) > 0.995


@pytest.mark.slow
def test_both_ways_to_compute_a_vector_agree(folder):
    cold, warm = OnnxFolderEmbedder(folder), OnnxFolderEmbedder(folder)
    warm.embed_documents(["word " * (MAX_TOKENS_WITHOUT_SESSION + 1)])
    for text in list(TEXTS.values())[:3]:
        first, second = cold.embed_query(text), warm.embed_query(text)
        assert cosine(first, second) > 0.995
        assert not np.array_equal(first, second)  # otherwise one way was tested twice


def test_whether_integer_products_saturate_is_found_out():
    assert products_saturate() in {True, False}
    assert not products_saturate() or sys.platform != "darwin"  # Apple's own processors do not


@pytest.mark.slow
@pytest.mark.parametrize("text", [TEXTS["question"], TEXTS["German"], TEXTS["Chinese"]])
def test_a_cold_query_imports_neither_onnxruntime_nor_tokenizers(folder, text):
    program = """
import sys
from pathlib import Path
from notewell.embedding.local.onnx_folder import OnnxFolderEmbedder
embedder = OnnxFolderEmbedder(Path(sys.argv[1]))
assert embedder.knows(sys.argv[2]) in (True, False)
assert len(embedder.embed_query(sys.argv[2]))
print([name for name in ("onnxruntime", "tokenizers") if name in sys.modules])
"""
    done = subprocess.run(
        [sys.executable, "-c", program, str(folder), text], capture_output=True, text=True, check=True, encoding="utf-8"
    )
    assert done.stdout.strip() == "[]"


# --- the shipped files ----------------------------------------------------------------------------


def test_the_shipped_files_are_those_of_the_card():
    folder = REPOSITORY_FOLDER
    if not (folder / "model.onnx").is_file():
        pytest.skip("models/notewell-memory has no model.onnx yet")
    facts = json.loads((folder / "notewell.json").read_text("utf-8"))
    card = (folder.parent / "README.md").read_text("utf-8")
    for name in ("model.onnx", "tokenizer.json"):
        found = hashlib.sha256((folder / name).read_bytes()).hexdigest()
        assert facts["sha256"][name] == found
        assert f"`{name}`: sha256 `{found}`" in card


def test_the_shipped_vocabulary_has_the_scripts_it_is_for():
    embedder = OnnxFolderEmbedder(shipped_folder())
    for text in (*TEXTS.values(), "昨日の夜、机の上に", "오늘 날씨가 좋아요", "Где лежит ключ?", "أين المفتاح؟"):
        assert embedder.knows(text)
    assert not embedder.knows("სათადარიგო გასაღები სად არის")  # Georgian is spelled out byte by byte


# --- the default, and indexes that are older than it ------------------------------------------------


def test_it_is_the_default_where_it_is_installed(installed):
    for provider in ("auto", "local"):
        assert select_embedder(Settings(provider=provider)).embedder.identity.model == "notewell-memory"


def test_granite_can_be_selected(installed, pack):
    assert select_embedder(Settings(provider="local", model=GRANITE)).embedder.identity.model == GRANITE
    assert select_embedder(Settings(provider="auto", model=GRANITE)).embedder.identity.model == GRANITE


def test_naming_a_model_that_is_not_installed_is_an_error(monkeypatch):
    monkeypatch.setattr(models, "memory_model_folder", lambda: None)
    with pytest.raises(EmbedderUnavailableError, match="notewell-memory is not installed") as caught:
        select_embedder(Settings(provider="local", model="notewell-memory"))
    assert "./models/notewell-memory" in caught.value.hint


@pytest.mark.slow
def test_an_older_index_keeps_its_model_until_it_is_told_otherwise(workspace, exported, monkeypatch, pack):
    monkeypatch.setattr(models, "memory_model_folder", lambda: None)
    with Memory.open(workspace) as memory:
        memory.index()
        built_with = memory.status().index_embedder
        assert GRANITE in built_with
    monkeypatch.setattr(models, "memory_model_folder", lambda: exported)
    (workspace / "memory" / "new.md").write_text("The boiler was serviced on Monday.\n", "utf-8")
    with Memory.open(workspace) as memory:
        answer = memory.search("when was the boiler serviced?")
        assert answer.mode == "hybrid"
        assert any("boiler" in hit.snippet for hit in answer.hits)
        report = memory.index()
        assert not report.rebuilt
        assert any("notewell index --force" in note and "notewell-memory" in note for note in report.notes)
        status = memory.status()
        assert status.index_embedder == built_with
        assert any("notewell index --force" in note for note in status.notes)
        assert memory.preview().rebuild_reason == ""
        assert memory.index(force=True).rebuilt
    with Memory.open(workspace) as memory:
        assert "notewell-memory" in memory.status().index_embedder
        assert not any("--force" in note for note in memory.index().notes)


# --- broken files, through the surface --------------------------------------------------------------


def truncated(folder):
    content = (folder / "model.onnx").read_bytes()
    (folder / "model.onnx").write_bytes(content[: len(content) // 2])


def with_a_wrong_byte(folder):
    content = bytearray((folder / "model.onnx").read_bytes())
    content[len(content) // 2] ^= 1
    (folder / "model.onnx").write_bytes(content)


def with_a_foreign_tokenizer(folder):
    (folder / "tokenizer.json").write_text('{"model": {}}')


def with_a_foreign_graph(folder):
    (folder / "model.onnx").write_bytes(b"GIF89a, not a model at all")


@pytest.mark.parametrize("broken", [truncated, with_a_wrong_byte, with_a_foreign_tokenizer, with_a_foreign_graph])
def test_a_broken_model_is_named_with_the_command_that_helps(installed, workspace, broken):
    broken(installed)
    with Memory.open(workspace) as memory:
        report = memory.index()
        assert not report.complete
        (problem,) = report.problems
        assert "checksum mismatch" in problem.reason
        assert "pip install --force-reinstall --no-deps ./models/notewell-memory" in problem.reason
        assert memory.search("deploy").mode == "keyword"


def test_a_folder_whose_facts_are_unusable_is_named(installed):
    (installed / "notewell.json").write_text('{"name": "x"}')
    with pytest.raises(EmbedderUnavailableError, match=r"notewell\.json cannot be used"):
        OnnxFolderEmbedder(installed)
