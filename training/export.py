"""Turns trained weights and their tokenizer into the folder that the package `notewell-memory` ships.

    python -m training.export --weights weights.npz --tokenizer tokenizer.json

The graph multiplies 8-bit activations with 8-bit weights, one scale per output channel. Granite's descendants have a
few channels that are a hundred times larger than the rest, which one scale per text cannot hold. So the export evens
out the channels before each product (SmoothQuant, Xiao et al. 2023): what the activations are divided by, the weights
are multiplied with. The largest channels of the wide layer stay in floating point. `calibration.jsonl` says how large
each channel gets. The same input gives the same bytes; the checksums go into `notewell.json` and the model card.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from notewell.embedding.local.numpy_inference import gelu

Floats = NDArray[np.float32]
Weights = dict[str, Floats]

HERE = Path(__file__).parent
PACKAGE = HERE.parent / "models" / "notewell-memory"
FOLDER = PACKAGE / "notewell_memory"
CALIBRATION = HERE / "calibration.jsonl"

HEADS = 12
POSITION_OFFSET = 2  # RoBERTa counts positions from 2
EPSILON = 1e-12
MAX_TOKENS = 512
CONTRIB = "com.microsoft"

# How much of a channel's size the weights take over, and how many channels stay floating point; chosen on Granite's own
# weights and 66 training texts by the cosine to the float pass: .9962 with no channel kept, .9989 with these.
SMOOTHING = {"x": 0.9, "o": 0.8, "a": 0.65, "g": 0.7}
KEPT_CHANNELS = 4
STEPS = 8  # smoothing factors are rounded to 1/8 of a power of two: another processor's rounding must not show


@dataclass
class Channels:
    """The smallest and the largest value of each channel at one place of the network."""

    low: Floats
    high: Floats

    def add(self, rows: Floats) -> None:
        self.low = np.minimum(self.low, rows.min(axis=0))
        self.high = np.maximum(self.high, rows.max(axis=0))


@dataclass(frozen=True)
class Smoothing:
    """Maps an activation to `(value - centre) / scale` before it is rounded to 8 bits."""

    centre: Floats
    scale: Floats
    kept: NDArray[np.int64]  # channels that are multiplied in floating point instead


def load_weights(path: Path) -> Weights:
    """Return the tensors of an .npz file as float32, also of the compact one that `training.train` writes."""
    with np.load(path) as stored:
        weights = {name: stored[name].astype(np.float32) for name in stored.files}
    if "word_codes" in weights:
        weights["word_emb"] = weights.pop("word_codes") * weights.pop("word_scales")
        position = weights.pop("position")
        weights["pos_emb"] = np.concatenate([np.zeros((POSITION_OFFSET, position.shape[1]), np.float32), position])
        weights["type_emb"] = np.zeros((1, position.shape[1]), np.float32)
    return weights


def layer_count(weights: Weights) -> int:
    """Return how many layers there are tensors for."""
    return 1 + max(int(found[1]) for name in weights if (found := re.match(r"l(\d+)\.", name)))


# --- the float pass ----------------------------------------------------------------------------------


def float_pass(weights: Weights, token_ids: Sequence[int], seen: dict[str, Channels] | None = None) -> Floats:
    """Return the first token's last state; `seen` gathers the channels of every product's input."""

    def note(place: str, rows: Floats) -> None:
        if seen is not None:
            width = rows.shape[1]
            empty = Channels(np.full(width, np.inf, np.float32), np.full(width, -np.inf, np.float32))
            seen.setdefault(place, empty).add(rows)

    def normed(rows: Floats, name: str) -> Floats:
        centred = rows - rows.mean(axis=1, keepdims=True)
        variance = (centred * centred).mean(axis=1, keepdims=True)
        return np.asarray(centred / np.sqrt(variance + EPSILON) * weights[f"{name}.w"] + weights[f"{name}.b"])

    def linear(rows: Floats, name: str) -> Floats:
        return np.asarray(rows @ weights[f"{name}.w"].T + weights[f"{name}.b"])

    def heads(rows: Floats) -> Floats:
        return rows.reshape(len(rows), HEADS, -1).transpose(1, 0, 2)

    hidden = normed(weights["word_emb"][list(token_ids)] + positions(weights)[: len(token_ids)], "emb_ln")
    for layer in range(layer_count(weights)):
        name = f"l{layer}"
        note(f"{name}.x", hidden)
        queries, keys, values = map(heads, np.split(linear(hidden, f"{name}.qkv"), 3, axis=1))
        scores = queries @ keys.transpose(0, 2, 1) / math.sqrt(queries.shape[2])
        powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
        mixed = (powers / powers.sum(axis=-1, keepdims=True) @ values).transpose(1, 0, 2).reshape(hidden.shape)
        note(f"{name}.o", mixed)
        attended = normed(hidden + linear(mixed, f"{name}.ao"), f"{name}.aln")
        note(f"{name}.a", attended)
        expanded = gelu(linear(attended, f"{name}.f1"))
        note(f"{name}.g", expanded)
        hidden = normed(attended + linear(expanded, f"{name}.f2"), f"{name}.fln")
    return np.asarray(hidden[0])


def positions(weights: Weights) -> Floats:
    """Return the embedding of each position; all tokens are of the first type."""
    return np.asarray(weights["pos_emb"][POSITION_OFFSET:] + weights["type_emb"][0])


# --- smoothing and rounding --------------------------------------------------------------------------


def smoothing(place: str, channels: Channels, matrix: Floats) -> Smoothing:
    """Return how to even out the channels that `matrix` (inputs x outputs) reads at this place."""
    kind = place.rpartition(".")[2]
    width = len(matrix)
    largest = np.maximum(np.abs(channels.low), np.abs(channels.high))
    weight = np.abs(matrix).max(axis=1)
    kept = np.zeros(0, np.int64)
    centre = _rounded((channels.low + channels.high) / 2)
    if kind == "g":  # after GELU nearly everything lies just below zero: the middle of the range is no centre
        kept = np.sort(np.argsort(-(largest * weight), kind="stable")[:KEPT_CHANNELS]).astype(np.int64)
        centre = np.zeros(width, np.float32)
    share = SMOOTHING[kind]
    reach = np.maximum(np.maximum(channels.high - centre, centre - channels.low), 1e-2)
    scale = np.log2(reach) * share - np.log2(np.maximum(weight, 1e-4)) * (1 - share)
    scale = 2 ** (np.round((scale - np.delete(scale, kept).mean()) * STEPS) / STEPS)
    return Smoothing(centre, scale.astype(np.float32), kept)


def _rounded(values: NDArray[np.floating[Any]]) -> Floats:
    return np.asarray(np.round(values * 64) / 64, np.float32)


def int8_columns(matrix: Floats) -> tuple[NDArray[np.int8], Floats]:
    """Return int8 values and the scale of each column."""
    scales = (np.abs(matrix).max(axis=0) / 127 + 1e-12).astype(np.float32)
    return np.round(matrix / scales).astype(np.int8), scales


# --- the graph ---------------------------------------------------------------------------------------


@dataclass
class Graph:
    """Nodes and tensors gathered so far; each method adds to them and returns the name of its result."""

    weights: Weights
    channels: dict[str, Channels]
    nodes: list[Any] = field(default_factory=list)
    tensors: dict[str, NDArray[Any]] = field(default_factory=dict)

    def node(self, op: str, inputs: list[str], output: str, *more: str, domain: str = "", **attributes: Any) -> str:
        self.nodes.append(helper.make_node(op, inputs, [output, *more], domain=domain, **attributes))
        return output

    def tensor(self, name: str, values: NDArray[Any]) -> str:
        self.tensors[name] = np.ascontiguousarray(values)
        return name

    def layer_norm(self, hidden: str, name: str, output: str) -> str:
        inputs = [hidden, *(self.tensor(f"{name}.{part}", self.weights[f"{name}.{part}"]) for part in "wb")]
        return self.node("LayerNormalization", inputs, output, axis=-1, epsilon=EPSILON)

    def smoothed(self, hidden: str, how: Smoothing, name: str) -> str:
        """Even out the channels; those that are kept become zero."""
        factor = 1 / how.scale
        factor[how.kept] = 0
        hidden = self.node("Mul", [hidden, self.tensor(f"{name}.factor", factor)], f"{name}.scaled")
        if how.centre.any():
            offset = self.tensor(f"{name}.offset", how.centre / how.scale)
            hidden = self.node("Sub", [hidden, offset], f"{name}.centred")
        return hidden

    def quantised(self, hidden: str, name: str) -> str:
        return self.node("DynamicQuantizeLinear", [hidden], f"{name}.u8", f"{name}.u8.scale", f"{name}.u8.zero")

    def product(self, quantised: str, matrix: Floats, bias: Floats | None, output: str) -> str:
        """Multiply with `matrix` (inputs x outputs); the scale and zero point are those beside `quantised`."""
        values, scales = int8_columns(matrix)
        activation = quantised.removesuffix(".first")
        inputs = [
            quantised,
            self.tensor(f"{output}.values", values),
            f"{activation}.scale",
            self.tensor(f"{output}.scales", scales),
            f"{activation}.zero",
        ]
        if bias is not None:
            inputs += ["", self.tensor(f"{output}.bias", bias)]
        return self.node("MatMulIntegerToFloat", inputs, output, domain=CONTRIB)

    def matrix(self, name: str) -> tuple[Floats, Floats]:
        return self.weights[f"{name}.w"].T, self.weights[f"{name}.b"]

    def first_token(self, hidden: str) -> str:
        return self.node("Slice", [hidden, "zero", "one", "one"], f"{hidden}.first")

    def block(self, layer: int, hidden: str, *, first_only: bool) -> str:
        """Add one layer. In the last one only the first token asks: nothing reads the other tokens' states."""
        name = f"l{layer}"
        matrix, bias = self.matrix(f"{name}.qkv")
        out_matrix, out_bias = self.matrix(f"{name}.ao")
        how = smoothing(f"{name}.x", self.channels[f"{name}.x"], matrix)
        # Attention takes means of values, so the smoothing of its output is part of the values' own weights.
        after = smoothing(f"{name}.o", self.channels[f"{name}.o"], out_matrix)
        rounded = self.quantised(self.smoothed(hidden, how, f"{name}.x"), f"{name}.x")
        bias = bias + how.centre @ matrix
        matrix = matrix * how.scale[:, None]
        width = matrix.shape[0]
        asking, asking_rounded = hidden, rounded
        if first_only:
            asking, asking_rounded = self.first_token(hidden), self.first_token(rounded)
        queries = self.product(asking_rounded, matrix[:, :width], bias[:width], f"{name}.queries")
        keys = self.product(rounded, matrix[:, width : 2 * width], bias[width : 2 * width], f"{name}.keys")
        values = self.product(
            rounded,
            matrix[:, 2 * width :] / after.scale,
            (bias[2 * width :] - after.centre) / after.scale,
            f"{name}.values",
        )
        seen = self.node("MultiHeadAttention", [queries, keys, values], f"{name}.seen", domain=CONTRIB, num_heads=HEADS)
        mixed = self.product(
            self.quantised(seen, f"{name}.o"),
            out_matrix * after.scale[:, None],
            out_bias + after.centre @ out_matrix,
            f"{name}.mixed",
        )
        attended = self.layer_norm(self.node("Add", [asking, mixed], f"{name}.asum"), f"{name}.aln", f"{name}.attended")
        reduced = self.feed_forward(name, attended)
        return self.layer_norm(self.node("Add", [attended, reduced], f"{name}.fsum"), f"{name}.fln", f"{name}.output")

    def feed_forward(self, name: str, attended: str) -> str:
        matrix, bias = self.matrix(f"{name}.f1")
        how = smoothing(f"{name}.a", self.channels[f"{name}.a"], matrix)
        rounded = self.quantised(self.smoothed(attended, how, f"{name}.a"), f"{name}.a")
        expanded = self.product(rounded, matrix * how.scale[:, None], None, f"{name}.expanded")
        bias_name = self.tensor(f"{name}.f1.bias", bias + how.centre @ matrix)
        activated = self.node("BiasGelu", [expanded, bias_name], f"{name}.activated", domain=CONTRIB)
        matrix, bias = self.matrix(f"{name}.f2")
        how = smoothing(f"{name}.g", self.channels[f"{name}.g"], matrix)
        rounded = self.quantised(self.smoothed(activated, how, f"{name}.g"), f"{name}.g")
        kept_rows = matrix[how.kept]
        matrix = matrix * how.scale[:, None]
        matrix[how.kept] = 0
        reduced = self.product(rounded, matrix, bias, f"{name}.reduced")
        kept = self.node("Gather", [activated, self.tensor(f"{name}.kept", how.kept)], f"{name}.large", axis=-1)
        exact = self.node("MatMul", [kept, self.tensor(f"{name}.kept.w", kept_rows)], f"{name}.exact")
        return self.node("Add", [reduced, exact], f"{name}.fed")


def build_graph(weights: Weights, channels: dict[str, Channels]) -> bytes:
    """Return the model: `input_ids` (1 x tokens) in, `sentence_embedding` (1 x width, not normalised) out."""
    graph = Graph(weights, channels)
    for name, value in (("zero", 0), ("one", 1), ("two", 2)):
        graph.tensor(name, np.array([value], np.int64))
    values, scales = int8_columns(weights["word_emb"].T)
    graph.tensor("word_emb", values.T)
    graph.tensor("word_emb.scales", scales[:, None])
    graph.tensor("pos_emb", positions(weights)[:MAX_TOKENS])
    words = graph.node(
        "Cast", [graph.node("Gather", ["word_emb", "input_ids"], "words.i8")], "words", to=TensorProto.FLOAT
    )
    scales_name = graph.node("Gather", ["word_emb.scales", "input_ids"], "words.scales")
    words = graph.node("Mul", [words, scales_name], "words.scaled")
    # Slice, not Gather(Range): onnxruntime 1.31 fuses the latter wrongly.
    count = graph.node("Slice", [graph.node("Shape", ["input_ids"], "shape"), "one", "two"], "count")
    places = graph.node("Slice", ["pos_emb", "zero", count, "zero"], "positions")
    hidden = graph.layer_norm(graph.node("Add", [words, places], "sums"), "emb_ln", "embedded")
    layers = layer_count(weights)
    for layer in range(layers):
        hidden = graph.block(layer, hidden, first_only=layer == layers - 1)
    graph.node("Squeeze", [hidden, "one"], "sentence_embedding")
    width = weights["word_emb"].shape[1]
    model = helper.make_model(
        helper.make_graph(
            graph.nodes,
            "notewell-memory",
            [helper.make_tensor_value_info("input_ids", TensorProto.INT64, [1, "tokens"])],
            [helper.make_tensor_value_info("sentence_embedding", TensorProto.FLOAT, [1, width])],
            [numpy_helper.from_array(values, name) for name, values in graph.tensors.items()],
        ),
        opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid(CONTRIB, 1)],
        ir_version=8,
        producer_name="notewell",
    )
    return bytes(model.SerializeToString(deterministic=True))


# --- the folder --------------------------------------------------------------------------------------


def calibrated(weights: Weights, texts: Iterable[Sequence[int]]) -> dict[str, Channels]:
    """Return the channels at every place, over the token ids of all texts."""
    seen: dict[str, Channels] = {}
    for token_ids in texts:
        float_pass(weights, token_ids, seen)
    return seen


def calibration_ids(tokenizer_file: Path, calibration: Path) -> Iterator[list[int]]:
    """Yield the token ids of each calibration text."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(tokenizer_file))
    tokenizer.enable_truncation(MAX_TOKENS)
    for line in calibration.read_text("utf-8").splitlines():
        yield tokenizer.encode(json.loads(line)).ids


def read_tokenizer(path: Path) -> dict[str, Any]:
    """Return the content of a tokenizer.json; refuse one whose ids the library reads differently.

    `tokenizers` numbers added tokens itself: one that the model's own vocabulary has moves all later ones.
    """
    from tokenizers import Tokenizer

    content: dict[str, Any] = json.loads(path.read_text("utf-8"))
    content["model"]["merges"] = [
        merge if isinstance(merge, str) else " ".join(merge) for merge in content["model"]["merges"]
    ]
    library = Tokenizer.from_file(str(path))
    wrong = [token for token in content["added_tokens"] if library.token_to_id(token["content"]) != token["id"]]
    if wrong:
        raise SystemExit(f"{path}: {len(wrong)} added tokens get another id, the first is {wrong[0]}")
    return content


def export(
    weights_file: Path,
    tokenizer_file: Path,
    folder: Path,
    *,
    calibration: Path = CALIBRATION,
    card: Path | None = None,
) -> dict[str, Any]:
    """Write the model folder and return the content of its `notewell.json`."""
    weights = load_weights(weights_file)
    tokenizer = read_tokenizer(tokenizer_file)
    tokens = 1 + max([*tokenizer["model"]["vocab"].values(), *(token["id"] for token in tokenizer["added_tokens"])])
    if tokens != len(weights["word_emb"]):
        raise SystemExit(f"{tokenizer_file} has {tokens} tokens, {weights_file} has {len(weights['word_emb'])} rows")
    folder.mkdir(parents=True, exist_ok=True)
    content = json.dumps(tokenizer, ensure_ascii=False, separators=(",", ":")).encode()
    (folder / "tokenizer.json").write_bytes(content)
    model = build_graph(weights, calibrated(weights, calibration_ids(folder / "tokenizer.json", calibration)))
    (folder / "model.onnx").write_bytes(model)
    pooling = {"word_embedding_dimension": weights["word_emb"].shape[1], "pooling_mode_cls_token": True}
    (folder / "1_Pooling").mkdir(exist_ok=True)
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(pooling) + "\n", "utf-8")
    checksums = {
        "model.onnx": hashlib.sha256(model).hexdigest(),
        "tokenizer.json": hashlib.sha256(content).hexdigest(),
    }
    facts = write_facts(folder / "notewell.json", sha256=checksums, cosine_range=(0, 1))
    from notewell.embedding.local.onnx_folder import OnnxFolderEmbedder
    from notewell.embedding.unit_vectors import measure_cosine_range

    low, high = measure_cosine_range(OnnxFolderEmbedder(folder))
    facts = write_facts(folder / "notewell.json", cosine_range=(round(low, 2), round(high, 2)))
    if card is not None:
        write_card(card, checksums, layers=layer_count(weights), tokens=tokens)
    return facts


def write_facts(path: Path, **new: Any) -> dict[str, Any]:
    """Update `notewell.json`, keeping what else it says, and return its content."""
    known = json.loads(path.read_text("utf-8")) if path.is_file() else {}
    facts: dict[str, Any] = {"name": "notewell-memory", **known, **new}
    path.write_text(json.dumps(facts, indent=2, ensure_ascii=False) + "\n", "utf-8")
    return facts


def write_card(card: Path, checksums: dict[str, str], *, layers: int, tokens: int) -> None:
    """Replace the facts between the card's two markers."""
    lines = [
        f"- {layers} layers, {tokens:,} tokens",
        *(f"- `{name}`: sha256 `{value}`" for name, value in checksums.items()),
    ]
    text = card.read_text("utf-8")
    marked = re.sub(
        r"(?s)(<!-- export -->\n).*?(<!-- /export -->)",
        lambda found: found[1] + "\n".join(lines) + "\n" + found[2],
        text,
    )
    card.write_text(marked, "utf-8")


def main() -> None:
    """Run the export from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weights", type=Path, required=True, help="the trained tensors, an .npz file")
    parser.add_argument("--tokenizer", type=Path, required=True, help="the tokenizer.json they were trained with")
    parser.add_argument("--out", type=Path, default=FOLDER, help="the folder to write")
    options = parser.parse_args()
    card = PACKAGE / "README.md" if options.out == FOLDER else None
    print(json.dumps(export(options.weights, options.tokenizer, options.out, card=card), indent=2, ensure_ascii=False))


if __name__ == "__main__":
    main()
