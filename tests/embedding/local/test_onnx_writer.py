from __future__ import annotations

import numpy as np
import pytest

from notewell.embedding.local.inference import Session
from notewell.embedding.local.onnx_writer import CONTRIB_DOMAIN, FLOAT, Constant, Node, TensorType, model_bytes

onnx = pytest.importorskip("onnx", reason="onnx reads the written graphs back")


def test_onnx_reads_back_what_was_written():
    content = model_bytes(
        [
            Node("Add", ["x", "w"], ["sum"]),
            Node("ReduceSum", ["sum", "axes"], ["y"], {"keepdims": 0}),
            Node("LayerNormalization", ["x", "w"], ["z"], {"axis": -1, "epsilon": 1e-12}),
            Node("Made", ["x"], ["u"], {"sizes": [1, 300, -2]}, CONTRIB_DOMAIN),
        ],
        inputs=[TensorType("x", FLOAT, [1, "tokens", 2])],
        outputs=[TensorType("y", FLOAT, [1, "tokens"])],
        weights=[TensorType("w", FLOAT, [2])],
        constants=[Constant("axes", [-1])],
    )
    model = onnx.load_model_from_string(content)
    graph = model.graph
    assert [(opset.domain, opset.version) for opset in model.opset_import] == [("", 17), ("com.microsoft", 1)]
    assert [(node.op_type, list(node.input), list(node.output)) for node in graph.node] == [
        ("Add", ["x", "w"], ["sum"]),
        ("ReduceSum", ["sum", "axes"], ["y"]),
        ("LayerNormalization", ["x", "w"], ["z"]),
        ("Made", ["x"], ["u"]),
    ]
    attributes = [{a.name: onnx.helper.get_attribute_value(a) for a in node.attribute} for node in graph.node]
    assert attributes == [{}, {"keepdims": 0}, {"axis": -1, "epsilon": pytest.approx(1e-12)}, {"sizes": [1, 300, -2]}]
    assert graph.node[3].domain == "com.microsoft"
    weight, axes = graph.initializer
    assert (weight.name, list(weight.dims), weight.data_location) == ("w", [2], onnx.TensorProto.EXTERNAL)
    assert onnx.numpy_helper.to_array(axes).tolist() == [-1]
    dimensions = graph.input[0].type.tensor_type.shape.dim
    assert [dimension.dim_param or dimension.dim_value for dimension in dimensions] == [1, "tokens", 2]


def test_onnxruntime_runs_it_with_weights_from_outside():
    content = model_bytes(
        [Node("Mul", ["x", "w"], ["product"]), Node("ReduceSum", ["product", "axes"], ["y"], {"keepdims": 0})],
        inputs=[TensorType("x", FLOAT, ["rows", 3])],
        outputs=[TensorType("y", FLOAT, ["rows"])],
        weights=[TensorType("w", FLOAT, [3])],
        constants=[Constant("axes", [1])],
    )
    session = Session(content, weights={"w": np.array([1, 10, 100], np.float32)})
    assert session.run("y", {"x": np.array([[1, 2, 3], [4, 5, 6]], np.float32)}).tolist() == [321, 654]


def test_the_weights_may_be_dropped_by_the_caller():
    weights = {"w": np.full(100_000, 2, np.float32)}
    content = model_bytes(
        [Node("Mul", ["x", "w"], ["y"])],
        inputs=[TensorType("x", FLOAT, [100_000])],
        outputs=[TensorType("y", FLOAT, [100_000])],
        weights=[TensorType("w", FLOAT, [100_000])],
    )
    session = Session(content, weights=weights)
    weights.clear()
    filler = [np.full(100_000, 7, np.float32) for _ in range(20)]  # would reuse freed memory
    assert set(session.run("y", {"x": np.ones(100_000, np.float32)}).tolist()) == {2.0}
    assert len(filler) == 20
