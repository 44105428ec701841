"""Builds the onnxruntime graph of the packaged Granite model.

Measured at 400 tokens on one core with AVX-512 VNNI, in ms: float32 matrix products 97, MatMulNBits 73. MatMulNBits
reads the pack's own int8 groups and quantises activations by the same groups, which keeps the cosine to the float32
pass above 0.9995. One scale per tensor would take 50 ms, but the cosine falls to 0.88; one per token gives 0.998 at
best, and the integer products of both saturate on processors without VNNI.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from notewell.embedding.local.granite_pack import GROUP, GroupedInt8, ModelPack
from notewell.embedding.local.inference import Session, on_all_cores
from notewell.embedding.local.onnx_writer import CONTRIB_DOMAIN, FLOAT, UINT8, Constant, Node, TensorType, model_bytes
from notewell.errors import EmbedderUnavailableError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from notewell.embedding.local.granite_pack import FloatArray

INPUT, OUTPUT = "token_sums", "first_token"

# onnxruntime's fused form of Add and LayerNormalization takes eight times as long as the two (8 ms per chunk, not 1).
DISABLED_OPTIMIZERS = ("SkipLayerNormFusion",)

_INT8_ACTIVATIONS = 4  # MatMulNBits: accuracy_level that lets it multiply in int8


@dataclass
class _Graph:
    """Collects nodes and weights; each method returns the name of its result."""

    pack: ModelPack
    nodes: list[Node] = field(default_factory=list)
    weights: dict[str, NDArray[np.generic]] = field(default_factory=dict)

    def node(self, op: str, inputs: list[str], output: str, **attributes: float) -> str:
        self.nodes.append(Node(op, inputs, [output], attributes))
        return output

    def contrib(self, op: str, inputs: list[str], output: str, **attributes: float) -> str:
        self.nodes.append(Node(op, inputs, [output], attributes, CONTRIB_DOMAIN))
        return output

    def row(self, name: str, rows: slice = slice(None)) -> str:
        key = f"{name}[{rows.start or 0}]"
        self.weights[key] = np.ascontiguousarray(self.pack.floats(name)[rows])
        return key

    def product(self, hidden: str, name: str, output: str, rows: slice = slice(None)) -> str:
        matrix = self.pack.grouped(f"{name}.w").rows(rows)
        outputs, inputs = matrix.values.shape
        self.weights[f"{output}.values"] = _unsigned(matrix)
        self.weights[f"{output}.scales"] = np.ascontiguousarray(matrix.scales, dtype=np.float32)
        return self.contrib(
            "MatMulNBits",
            [hidden, f"{output}.values", f"{output}.scales"],
            output,
            K=inputs,
            N=outputs,
            bits=8,
            block_size=GROUP,
            accuracy_level=_INT8_ACTIVATIONS,
        )

    def linear(self, hidden: str, name: str, output: str, rows: slice = slice(None)) -> str:
        product = self.product(hidden, name, f"{output}.product", rows)
        return self.node("Add", [product, self.row(f"{name}.b", rows)], output)

    def layer_norm(self, hidden: str, name: str, output: str) -> str:
        inputs = [hidden, self.row(f"{name}.w"), self.row(f"{name}.b")]
        return self.node("LayerNormalization", inputs, output, axis=-1, epsilon=self.pack.architecture.layer_norm_eps)

    def residual_norm(self, hidden: str, added: str, name: str, output: str) -> str:
        return self.layer_norm(self.node("Add", [hidden, added], f"{output}.sum"), name, output)

    def block(self, layer: int, hidden: str, asking: str) -> str:
        """Add one layer: the tokens in `asking` attend to all tokens in `hidden`."""
        name, width = f"l{layer}", self.pack.architecture.hidden
        queries = self.linear(asking, f"{name}.qkv", f"{name}.queries", slice(0, width))
        keys = self.linear(hidden, f"{name}.qkv", f"{name}.keys", slice(width, 2 * width))
        values = self.linear(hidden, f"{name}.qkv", f"{name}.values", slice(2 * width, None))
        heads = self.pack.architecture.heads
        seen = self.contrib("MultiHeadAttention", [queries, keys, values], f"{name}.seen", num_heads=heads)
        mixed = self.linear(seen, f"{name}.ao", f"{name}.mixed")
        attended = self.residual_norm(asking, mixed, f"{name}.aln", f"{name}.attended")
        expanded = self.product(attended, f"{name}.f1", f"{name}.expanded")
        activated = self.contrib("BiasGelu", [expanded, self.row(f"{name}.f1.b")], f"{name}.activated")
        reduced = self.linear(activated, f"{name}.f2", f"{name}.reduced")
        return self.residual_norm(attended, reduced, f"{name}.fln", f"{name}.output")


def granite_graph(pack: ModelPack) -> tuple[bytes, dict[str, NDArray[np.generic]]]:
    """Return the graph for one text (`INPUT`: 1 x tokens x hidden, `OUTPUT`: 1 x hidden) and its weights by name."""
    width, last_layer = pack.architecture.hidden, pack.architecture.layers - 1
    graph = _Graph(pack)
    hidden = graph.layer_norm(INPUT, "emb_ln", "embedded")
    for layer in range(last_layer):
        hidden = graph.block(layer, hidden, hidden)
    first = graph.node("Slice", [hidden, "zero", "one", "one"], "first")
    graph.node("Squeeze", [graph.block(last_layer, hidden, first), "one"], OUTPUT)
    content = model_bytes(
        graph.nodes,
        inputs=[TensorType(INPUT, FLOAT, [1, "tokens", width])],
        outputs=[TensorType(OUTPUT, FLOAT, [1, width])],
        weights=[
            TensorType(name, UINT8 if array.dtype == np.uint8 else FLOAT, array.shape)
            for name, array in graph.weights.items()
        ],
        constants=[Constant("zero", [0]), Constant("one", [1])],
    )
    return content, graph.weights


class GraniteSession:
    """Runs the graph."""

    def __init__(self, pack: ModelPack) -> None:
        content, weights = granite_graph(pack)
        try:
            self._session = Session(content, weights=weights, disabled_optimizers=DISABLED_OPTIMIZERS)
        except EmbedderUnavailableError:
            raise
        except Exception as error:  # onnxruntime's own classes share no other base
            raise EmbedderUnavailableError(
                f"onnxruntime cannot run the packaged model: {error}", hint="run `pip install --upgrade onnxruntime`"
            ) from error

    def vectors(
        self, windows: Sequence[Sequence[int]], token_sums: Callable[[Sequence[int]], FloatArray]
    ) -> list[FloatArray]:
        """Return the first token's last hidden state for each window of token ids."""

        def vector(window: Sequence[int]) -> FloatArray:
            first_token: FloatArray = self._session.run(OUTPUT, {INPUT: token_sums(window)[np.newaxis]})[0]
            return first_token

        return on_all_cores(vector, windows)


def _unsigned(matrix: GroupedInt8) -> NDArray[np.uint8]:
    """Return the int8 values in the layout of MatMulNBits: (outputs, groups, columns of a group), 128 is zero."""
    rows, columns = matrix.values.shape
    shifted = np.bitwise_xor(matrix.values.view(np.uint8), 0x80)  # the same as adding 128
    return np.ascontiguousarray(shifted.reshape(rows, columns // GROUP, GROUP))
