"""Runs the packaged Granite model in plain NumPy.

It is the reference for the faster onnxruntime graph, and embeds single queries: a cold process would spend more time
on starting onnxruntime than on the query.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from notewell.embedding.local.granite_pack import GroupedInt8, ModelPack

if TYPE_CHECKING:
    from notewell.embedding.local.granite_pack import FloatArray


class NumpyForward:
    """The forward pass. Several threads may run it at once.

    Matrices are dequantised for each product and dropped again: one reuses the memory of the other, where 40 MB of
    fresh pages would cost a single query as much as its arithmetic. For many texts use the graph.
    """

    def __init__(self, pack: ModelPack) -> None:
        self._pack = pack

    def token_sums(self, token_ids: Sequence[int]) -> FloatArray:
        """Return word plus position plus type embedding of each token, before the first layer norm."""
        words = self._words.rows(token_ids).dequantised()
        return words + self._positions[: len(token_ids)]

    def vector(self, token_ids: Sequence[int]) -> FloatArray:
        """Return the first token's last hidden state, not normalised."""
        last_layer = self._pack.architecture.layers - 1
        hidden = self._layer_norm(self.token_sums(token_ids), "emb_ln")
        for layer in range(last_layer):
            hidden = self._block(layer, hidden, hidden)
        first_token: FloatArray = self._block(last_layer, hidden, hidden[:1])[
            0
        ]  # nothing reads the other tokens' state
        return first_token

    @cached_property
    def _words(self) -> GroupedInt8:
        return self._pack.grouped("word_emb")

    @cached_property
    def _positions(self) -> FloatArray:
        positions: FloatArray = self._pack.floats("pos_emb")[self._pack.architecture.position_offset :]
        positions += self._pack.floats("type_emb")[0]  # all tokens are of the first type
        return positions

    def _block(self, layer: int, hidden: FloatArray, asking: FloatArray) -> FloatArray:
        """Return the next state of the tokens in `asking`, which attend to all tokens in `hidden`."""
        name = f"l{layer}"
        width = hidden.shape[1]
        weights, biases = self._pack.grouped(f"{name}.qkv.w").dequantised(), self._pack.floats(f"{name}.qkv.b")
        queries = self._heads(asking @ weights[:width].T + biases[:width])
        keys, values = map(self._heads, np.split(hidden @ weights[width:].T + biases[width:], 2, axis=1))
        seen = softmax(queries @ keys.transpose(0, 2, 1) / math.sqrt(queries.shape[2])) @ values
        mixed = seen.transpose(1, 0, 2).reshape(len(asking), width)
        attended = self._layer_norm(asking + self._linear(mixed, f"{name}.ao"), f"{name}.aln")
        expanded = gelu(self._linear(attended, f"{name}.f1"))
        return self._layer_norm(attended + self._linear(expanded, f"{name}.f2"), f"{name}.fln")

    def _heads(self, rows: FloatArray) -> FloatArray:
        """Split (tokens, width) into (heads, tokens, width of a head)."""
        heads: FloatArray = rows.reshape(len(rows), self._pack.architecture.heads, -1).transpose(1, 0, 2)
        return heads

    def _linear(self, rows: FloatArray, name: str) -> FloatArray:
        return rows @ self._pack.grouped(f"{name}.w").dequantised().T + self._pack.floats(f"{name}.b")

    def _layer_norm(self, rows: FloatArray, name: str) -> FloatArray:
        centred = rows - rows.mean(axis=1, keepdims=True)
        variance = (centred * centred).mean(axis=1, keepdims=True)
        scaled = centred / np.sqrt(variance + np.float32(self._pack.architecture.layer_norm_eps))
        normed: FloatArray = scaled * self._pack.floats(f"{name}.w") + self._pack.floats(f"{name}.b")
        return normed


def softmax(scores: FloatArray) -> FloatArray:
    """Return the softmax over the last axis."""
    powers: FloatArray = np.exp(scores - scores.max(axis=-1, keepdims=True))
    powers /= powers.sum(axis=-1, keepdims=True)
    return powers


def gelu(rows: FloatArray) -> FloatArray:
    """Return the exact GELU, not the approximation by tanh."""
    return rows * np.float32(0.5) * (1 + _erf(rows * np.float32(math.sqrt(0.5))))


def _erf(values: FloatArray) -> FloatArray:
    """Return the error function to within 1.5e-7: Abramowitz and Stegun, formula 7.1.26."""
    magnitudes = np.abs(values)
    t: FloatArray = np.reciprocal(1 + np.float32(0.3275911) * magnitudes)
    polynomial = np.zeros_like(values)
    for coefficient in (1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592):
        polynomial = (polynomial + np.float32(coefficient)) * t
    error: FloatArray = np.copysign(1 - polynomial * np.exp(-magnitudes * magnitudes), values)
    return error
