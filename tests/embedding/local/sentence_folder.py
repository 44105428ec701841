"""Writes small but real ONNX sentence models: options come in, a folder as sentence-transformers writes it goes out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

onnx = pytest.importorskip("onnx", reason="onnx builds the sentence models of these tests")
tokenizers = pytest.importorskip("tokenizers", reason="tokenizers builds their vocabulary")

WORDS = ("guest", "wifi", "password", "is", "lighthouse", "query", "passage", "what", "the", "note", ":", "a", "b")
DIMENSIONS = 16


def write_sentence_folder(
    folder: Path,
    *,
    seed: int = 0,
    pooling: dict[str, Any] | None = None,
    prompts: dict[str, str] | None = None,
    pooled_output: bool = False,
    inputs: tuple[str, ...] = ("input_ids", "attention_mask", "token_type_ids"),
    integers: str = "INT64",
    model_file: str = "model.onnx",
    external_data: str = "",
    max_seq_length: int = 32,
) -> Path:
    (folder / model_file).parent.mkdir(parents=True, exist_ok=True)
    _write_model(folder / model_file, seed, pooled_output, inputs, integers, external_data)
    _write_tokenizer(folder / "tokenizer.json")
    _write_json(folder / "sentence_bert_config.json", {"max_seq_length": max_seq_length, "do_lower_case": False})
    _write_json(folder / "1_Pooling" / "config.json", {"word_embedding_dimension": DIMENSIONS, **(pooling or {})})
    if prompts is not None:
        _write_json(folder / "config_sentence_transformers.json", {"prompts": prompts, "default_prompt_name": None})
    return folder


def word_vectors(seed: int = 0) -> np.ndarray:
    """The model's whole knowledge: one row a token, in vocabulary order."""
    return np.random.default_rng(seed).normal(size=(len(_vocabulary()), DIMENSIONS)).astype(np.float32)


def token_ids(text: str) -> list[int]:
    """The ids the tokenizer gives: [CLS], the words, [SEP]."""
    vocabulary = _vocabulary()
    return [vocabulary["[CLS]"], *(vocabulary.get(word, 0) for word in text.split()), vocabulary["[SEP]"]]


def _write_model(path: Path, seed: int, pooled: bool, inputs: tuple[str, ...], integers: str, external: str) -> None:
    helper, types = onnx.helper, onnx.TensorProto
    nodes = [helper.make_node("Gather", ["words", "input_ids"], ["gathered"])]
    last = "gathered"
    # Every further input has a part in the result, so that a wrong value or a missing one shows.
    if "attention_mask" in inputs:
        nodes += [
            helper.make_node("Cast", ["attention_mask"], ["mask"], to=types.FLOAT),
            helper.make_node("Unsqueeze", ["mask", "last_axis"], ["mask_column"]),
            helper.make_node("Mul", [last, "mask_column"], ["masked"]),
        ]
        last = "masked"
    for name in set(inputs) & {"token_type_ids", "position_ids"}:
        table = "types" if name == "token_type_ids" else "positions"
        nodes += [
            helper.make_node("Gather", [table, name], [f"{name}_rows"]),
            helper.make_node("Add", [last, f"{name}_rows"], [f"{name}_added"]),
        ]
        last = f"{name}_added"
    shape: list[str | int] = ["batch", "sequence", DIMENSIONS]
    output = "last_hidden_state"
    if pooled:
        nodes.append(helper.make_node("ReduceMean", [last, "token_axis"], ["sentence_embedding"], keepdims=0))
        output, shape = "sentence_embedding", ["batch", DIMENSIONS]
    else:
        nodes.append(helper.make_node("Identity", [last], [output]))
    zeros = np.zeros((2, DIMENSIONS), np.float32)
    constants = {
        "words": word_vectors(seed),
        "types": zeros + np.array([[0], [5]], np.float32),  # a wrong type id moves every vector
        "positions": np.zeros((64, DIMENSIONS), np.float32),
        "last_axis": np.array([2], np.int64),
        "token_axis": np.array([1], np.int64),
    }
    graph = helper.make_graph(
        nodes,
        "sentence model",
        [helper.make_tensor_value_info(name, getattr(types, integers), ["batch", "sequence"]) for name in inputs],
        [helper.make_tensor_value_info(output, types.FLOAT, shape)],
        [onnx.numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    onnx.checker.check_model(model)
    onnx.save(model, path, save_as_external_data=bool(external), location=external or None, size_threshold=64)


def _write_tokenizer(path: Path) -> None:
    vocabulary = _vocabulary()
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    tokenizer.post_processor = tokenizers.processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        special_tokens=[("[CLS]", vocabulary["[CLS]"]), ("[SEP]", vocabulary["[SEP]"])],
    )
    tokenizer.enable_truncation(6)  # exports often carry a limit and padding of their own, which must not count
    tokenizer.enable_padding(length=12, pad_id=3, pad_token="[PAD]")
    tokenizer.save(str(path))


def _vocabulary() -> dict[str, int]:
    return {word: number for number, word in enumerate(("[UNK]", "[CLS]", "[SEP]", "[PAD]", *WORDS))}


def _write_json(path: Path, content: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content), encoding="utf-8")
