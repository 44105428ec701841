"""Writes ONNX graphs as the bytes of a `ModelProto`, without the `onnx` package of 60 MB.

The dozen fields used here come from `onnx.proto` (IR version 8); a test reads the result with `onnx`.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

IR_VERSION = 8  # the oldest with opset 17; onnxruntime reads it since 1.12
OPSET_VERSION = 17  # the first with LayerNormalization
CONTRIB_DOMAIN = "com.microsoft"  # onnxruntime's own operators

FLOAT, UINT8, INT8, INT32, INT64 = 1, 2, 3, 6, 7  # TensorProto.DataType

_VARINT, _BYTES, _FIXED32 = 0, 2, 5  # protobuf wire types
_ATTRIBUTE_FLOAT, _ATTRIBUTE_INT, _ATTRIBUTE_INTS = 1, 2, 7  # AttributeProto.AttributeType
_EXTERNAL = 1  # TensorProto.DataLocation

Shape = Sequence[int | str]  # a name stands for a dimension that differs from run to run


@dataclass(frozen=True, slots=True)
class Node:
    """One operation of a graph."""

    op: str
    inputs: Sequence[str]
    outputs: Sequence[str]
    attributes: Mapping[str, int | float | Sequence[int]] = field(default_factory=dict)
    domain: str = ""


@dataclass(frozen=True, slots=True)
class TensorType:
    """Name, element type and shape of an input, an output or an initializer."""

    name: str
    element: int
    shape: Shape


@dataclass(frozen=True, slots=True)
class Constant:
    """A small tensor of 64-bit integers within the graph."""

    name: str
    values: Sequence[int]


def model_bytes(
    nodes: Sequence[Node],
    *,
    inputs: Sequence[TensorType],
    outputs: Sequence[TensorType],
    weights: Sequence[TensorType],
    constants: Sequence[Constant] = (),
) -> bytes:
    """Return a serialised model; its `weights` are declared and supplied when it is loaded."""
    graph = b"".join(
        [
            *(_message(1, _node(node)) for node in nodes),
            _text(2, "graph"),
            *(_message(5, _external_tensor(weight)) for weight in weights),
            *(_message(5, _constant(constant)) for constant in constants),
            *(_message(11, _value_info(value)) for value in inputs),
            *(_message(12, _value_info(value)) for value in outputs),
        ]
    )
    opsets = [_integer(2, OPSET_VERSION), _text(1, CONTRIB_DOMAIN) + _integer(2, 1)]
    return _integer(1, IR_VERSION) + _message(7, graph) + b"".join(_message(8, opset) for opset in opsets)


def _node(node: Node) -> bytes:
    return b"".join(
        [
            *(_text(1, name) for name in node.inputs),
            *(_text(2, name) for name in node.outputs),
            _text(3, node.outputs[0]),
            _text(4, node.op),
            *(_message(5, _attribute(name, value)) for name, value in node.attributes.items()),
            _text(7, node.domain) if node.domain else b"",
        ]
    )


def _attribute(name: str, value: float | Sequence[int]) -> bytes:
    if isinstance(value, float):
        payload, kind = _key(2, _FIXED32) + struct.pack("<f", value), _ATTRIBUTE_FLOAT
    elif isinstance(value, int):
        payload, kind = _integer(3, value), _ATTRIBUTE_INT
    else:
        payload, kind = b"".join(_integer(8, item) for item in value), _ATTRIBUTE_INTS
    return _text(1, name) + payload + _integer(20, kind)


def _external_tensor(tensor: TensorType) -> bytes:
    # The location is never opened: onnxruntime takes the values from add_external_initializers, by name.
    location = _text(1, "location") + _text(2, "supplied-at-load")
    dimensions = b"".join(_integer(1, int(size)) for size in tensor.shape)
    head = dimensions + _integer(2, tensor.element) + _text(8, tensor.name)
    return head + _message(13, location) + _integer(14, _EXTERNAL)


def _constant(constant: Constant) -> bytes:
    raw = struct.pack(f"<{len(constant.values)}q", *constant.values)
    return _integer(1, len(constant.values)) + _integer(2, INT64) + _text(8, constant.name) + _message(9, raw)


def _value_info(value: TensorType) -> bytes:
    dimensions = b"".join(
        _message(1, _integer(1, size) if isinstance(size, int) else _text(2, size)) for size in value.shape
    )
    tensor_type = _integer(1, value.element) + _message(2, dimensions)
    return _text(1, value.name) + _message(2, _message(1, tensor_type))


def _message(number: int, payload: bytes) -> bytes:
    return _key(number, _BYTES) + _varint(len(payload)) + payload


def _text(number: int, text: str) -> bytes:
    return _message(number, text.encode())


def _integer(number: int, value: int) -> bytes:
    return _key(number, _VARINT) + _varint(value & 0xFFFF_FFFF_FFFF_FFFF)  # negative numbers: 64-bit two's complement


def _key(number: int, wire_type: int) -> bytes:
    return _varint(number << 3 | wire_type)


def _varint(value: int) -> bytes:
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)
