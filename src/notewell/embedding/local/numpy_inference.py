"""Runs the packaged models with NumPy, for a cold process that starts faster without onnxruntime.

Activations stay floating point, so this is also the reference for the integer products of onnxruntime. Safe for several
threads.
"""

from __future__ import annotations

import math
import mmap
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from notewell.embedding.local.onnx_writer import Node

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from notewell.embedding.local.granite_pack import GroupedInt8, ModelPack

    FloatArray = NDArray[np.float32]
    Array = NDArray[Any]


# --- Granite, from its pack ----------------------------------------------------------------------


class NumpyForward:
    """The forward pass of Granite, for single texts.

    Matrices are dequantised for each product, so that they share memory: allocating 40 MB would take as long as the
    arithmetic of a query.
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
        first_token: FloatArray = self._block(last_layer, hidden, hidden[:1])[0]  # the others are not used
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
        epsilon = self._pack.architecture.layer_norm_eps
        return layer_norm(rows, self._pack.floats(f"{name}.w"), self._pack.floats(f"{name}.b"), epsilon)


# --- notewell-memory, from its graph -------------------------------------------------------------


# Field numbers and element types of onnx.proto, as far as the exported graph uses them.
_TYPES: Mapping[int, str] = {1: "<f4", 3: "|i1", 7: "<i8"}
_GRAPH, _NODE, _INITIALIZER = 7, 1, 5
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5  # protobuf wire types


class NumpyGraph:
    """A model file, mapped into memory; weights are converted to floats for one product at a time."""

    def __init__(self, path: Path) -> None:
        with path.open("rb") as file:
            self._content = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        self._nodes: list[Node] = []
        self._tensors: dict[str, _Tensor] = {}
        graph = next(value for number, value in _fields(self._content) if number == _GRAPH)
        for number, value in _fields(graph):
            if number == _NODE:
                self._nodes.append(_node(value))
            elif number == _INITIALIZER:
                tensor = _Tensor.read(value)
                self._tensors[tensor.name] = tensor

    def vector(self, token_ids: Sequence[int]) -> FloatArray:
        """Return the sentence embedding, not normalised."""
        values: dict[str, Array] = {"input_ids": np.asarray([token_ids], np.int64)}
        for node in self._nodes:
            inputs = [
                None if not name else values[name] if name in values else self._tensors[name].values
                for name in node.inputs
            ]
            values[node.outputs[0]] = _OPERATIONS[node.op](node.attributes, *inputs)
            # Nothing is quantised here: scale and zero point of DynamicQuantizeLinear are not used.
            values.update(dict.fromkeys(node.outputs[1:], _NOTHING))
        row: FloatArray = values[self._nodes[-1].outputs[0]][0]
        return row


@dataclass(frozen=True)
class _Tensor:
    name: str
    shape: list[int]
    element: str
    raw: memoryview

    @classmethod
    def read(cls, message: memoryview) -> _Tensor:
        shape: list[int] = []
        name, element, raw = "", "", memoryview(b"")
        for number, value in _fields(message):
            if number == 1:
                shape += [value] if isinstance(value, int) else list(_varints(value))
            elif number == 2:
                element = _TYPES[value]
            elif number == 8:
                name = bytes(value).decode()
            elif number == 9:
                raw = value
        return cls(name, shape, element, raw)

    @cached_property
    def values(self) -> Array:
        values = np.frombuffer(self.raw, self.element).reshape(self.shape)
        # Arithmetic on unaligned memory is slow; bytes need no alignment.
        return values if self.element == "|i1" else values.copy()


def _node(message: memoryview) -> Node:
    inputs, outputs, op = [], [], ""
    attributes: dict[str, Any] = {}
    for number, value in _fields(message):
        if number == 1:
            inputs.append(bytes(value).decode())
        elif number == 2:
            outputs.append(bytes(value).decode())
        elif number == 4:
            op = bytes(value).decode()
        elif number == 5:
            parts = dict(_fields(value))
            attributes[bytes(parts[1]).decode()] = parts.get(2, parts.get(3))
    return Node(op, inputs, outputs, attributes)


def _fields(message: memoryview) -> Iterator[tuple[int, Any]]:
    """Yield number and value of each field of a protobuf message."""
    at = 0
    while at < len(message):
        key, at = _varint(message, at)
        number, kind = key >> 3, key & 7
        if kind == _VARINT:
            value, at = _varint(message, at)
            yield number, value - (1 << 64) if value >> 63 else value
        elif kind == _BYTES:
            length, at = _varint(message, at)
            yield number, message[at : at + length]
            at += length
        elif kind == _FIXED32:
            yield number, struct.unpack_from("<f", message, at)[0]
            at += 4
        elif kind == _FIXED64:
            at += 8
        else:
            raise ValueError(f"wire type {kind} in the model file")


def _varint(message: memoryview, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = message[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7


def _varints(packed: memoryview) -> Iterator[int]:
    at = 0
    while at < len(packed):
        value, at = _varint(packed, at)
        yield value


# --- operations: attributes and inputs come in, the first output goes out ----------------------------

_NOTHING = np.zeros(0, np.float32)


def _gather(attributes: Mapping[str, Any], data: Array, indices: Array) -> Array:
    return np.take(data, indices, axis=attributes.get("axis", 0))


def _slice(_: Mapping[str, Any], data: Array, starts: Array, ends: Array, axes: Array | None = None) -> Array:
    axis = int(axes[0]) if axes is not None else 0
    part: Array = data[(*(slice(None),) * axis, slice(int(starts[0]), int(ends[0])))]
    return part


def _integer_product(
    _: Mapping[str, Any],
    rows: Array,
    values: Array,
    _scale: Array,
    scales: Array,
    _zero: Array,
    _weight_zero: None = None,
    bias: Array | None = None,
) -> Array:
    product = rows @ values.astype(np.float32) * scales
    return product if bias is None else product + bias


def _attention(attributes: Mapping[str, Any], queries: Array, keys: Array, values: Array) -> Array:
    def heads(rows: Array) -> Array:
        return rows.reshape(rows.shape[1], attributes["num_heads"], -1).transpose(1, 0, 2)

    asking = heads(queries)
    scores: FloatArray = (asking @ heads(keys).transpose(0, 2, 1)).astype(np.float32, copy=False)
    scores /= np.float32(math.sqrt(asking.shape[2]))
    seen = softmax(scores) @ heads(values)
    return seen.transpose(1, 0, 2).reshape(queries.shape)


_OPERATIONS: Mapping[str, Callable[..., Array]] = {
    "Add": lambda _, left, right: left + right,
    "BiasGelu": lambda _, rows, bias: gelu(rows + bias),
    "Cast": lambda _, values: values.astype(np.float32),
    "DynamicQuantizeLinear": lambda _, rows: rows,
    "Gather": _gather,
    "LayerNormalization": lambda names, rows, weight, bias: layer_norm(rows, weight, bias, names["epsilon"]),
    "MatMul": lambda _, left, right: left @ right,
    "MatMulIntegerToFloat": _integer_product,
    "Mul": lambda _, left, right: left * right,
    "MultiHeadAttention": _attention,
    "Shape": lambda _, values: np.asarray(values.shape, np.int64),
    "Slice": _slice,
    "Squeeze": lambda _, values, axes: values.squeeze(int(axes[0])),
    "Sub": lambda _, left, right: left - right,
}


# --- what both need -------------------------------------------------------------------------------


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


def layer_norm(rows: FloatArray, weight: FloatArray, bias: FloatArray, epsilon: float) -> FloatArray:
    """Return the rows with mean 0 and variance 1, scaled and shifted."""
    centred = rows - rows.mean(axis=-1, keepdims=True)
    variance = (centred * centred).mean(axis=-1, keepdims=True)
    normed: FloatArray = centred / np.sqrt(variance + np.float32(epsilon)) * weight + bias
    return normed
