"""Exports a tiny model of the packaged model's kind: random weights, a byte-level vocabulary with added words."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx", reason="onnx writes the model of these tests")

from training.export import CALIBRATION, Weights, export

from notewell.embedding.local.models import memory_model_folder
from notewell.embedding.local.token_ids import _visible_bytes

WIDTH, INNER, LAYERS, TOKENS = 96, 192, 3, 514
ADDED_WORDS = (
    "über",
    "für",
    "的",
    "我的",
    "银行",
    "の",
    "날씨",
    "не",
    "нет",
    "ไม่",
    "नहीं",
    "لا",
    "không",
    "laut",
    "año",
)
REPOSITORY_FOLDER = Path(__file__).parents[3] / "models" / "notewell-memory" / "notewell_memory"


def shipped_folder() -> Path:
    """Return the folder of the packaged model: the installed one, or the one in this checkout."""
    folder = memory_model_folder() or REPOSITORY_FOLDER
    if not (folder / "model.onnx").is_file():
        pytest.skip("notewell-memory is not here: run `pip install ./models/notewell-memory`")
    return folder


def tiny_tokenizer() -> dict[str, Any]:
    """A tokenizer.json with a token per byte, a few merges and `ADDED_WORDS`."""
    merges = ["t h", "th e", "Ġ the", "i n", "Ġ w", "Ġw i", "f i", "Ã ¼"]
    pieces = ["<s>", "<pad>", "</s>", "<unk>", *_visible_bytes(), *(merge.replace(" ", "") for merge in merges)]
    vocabulary = {piece: number for number, piece in enumerate(pieces)}
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    added = [{"id": number, "content": pieces[number], "special": True, **flags} for number in range(4)]
    for number, word in enumerate(ADDED_WORDS, start=len(pieces)):
        latin = word < "\u0300"
        more = {"single_word": latin, "lstrip": True}
        added.append({"id": number, "content": word, "special": False, **flags, **more})
    pre_tokenizer = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    post_processor = {
        "type": "RobertaProcessing",
        "sep": ["</s>", 2],
        "cls": ["<s>", 0],
        "trim_offsets": True,
        "add_prefix_space": False,
    }
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": added,
        "normalizer": None,
        "pre_tokenizer": pre_tokenizer,
        "post_processor": post_processor,
        "decoder": None,
        "model": {"type": "BPE", "vocab": vocabulary, "merges": merges},
    }


def tiny_weights(rows: int, seed: int = 0) -> Weights:
    """Random weights with one channel that is far larger than the others, as Granite has."""
    random = np.random.default_rng(seed)

    def matrix(*shape: int, size: float = 0.1) -> Any:
        return (random.normal(size=shape) * size).astype(np.float32)

    weights = {
        "word_emb": matrix(rows, WIDTH, size=1),
        "pos_emb": matrix(TOKENS, WIDTH),
        "type_emb": matrix(1, WIDTH),
        "emb_ln.w": 1 + matrix(WIDTH),
        "emb_ln.b": matrix(WIDTH),
    }
    for layer in range(LAYERS):
        shapes = {"qkv": (3 * WIDTH, WIDTH), "ao": (WIDTH, WIDTH), "f1": (INNER, WIDTH), "f2": (WIDTH, INNER)}
        for name, shape in shapes.items():
            weights[f"l{layer}.{name}.w"] = matrix(*shape, size=0.15)
            weights[f"l{layer}.{name}.b"] = matrix(shape[0])
        for name in ("aln", "fln"):
            weights[f"l{layer}.{name}.w"] = 1 + matrix(WIDTH)
            weights[f"l{layer}.{name}.b"] = matrix(WIDTH)
        weights[f"l{layer}.f1.w"][7] = 8 * weights[f"l{layer}.f1.w"][7]
    return weights


def write_exported_folder(folder: Path, *, seed: int = 0) -> Path:
    """Export a tiny model into a folder, as `python -m training.export` does."""
    folder.mkdir(parents=True, exist_ok=True)
    sources = folder.parent / f"{folder.name}-sources"
    sources.mkdir(exist_ok=True)
    tokenizer = tiny_tokenizer()
    (sources / "tokenizer.json").write_text(json.dumps(tokenizer), "utf-8")
    rows = len(tokenizer["model"]["vocab"]) + len(ADDED_WORDS)
    np.savez(sources / "weights.npz", **tiny_weights(rows, seed))  # type: ignore[arg-type]
    (sources / "calibration.jsonl").write_text("\n".join(_calibration_lines()) + "\n", "utf-8")
    export(
        sources / "weights.npz",
        sources / "tokenizer.json",
        folder,
        calibration=sources / "calibration.jsonl",
    )
    return folder


@cache
def _calibration_lines() -> list[str]:
    return CALIBRATION.read_text("utf-8").splitlines()[::12]
