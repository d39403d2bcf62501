"""Models for fuzzers, which corrupt their bytes, or, by `mutated_fields`, their numbers, names and operands."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import onnx
from onnx import helper

_NUMBERS: Final = (0, 1, -1, 2, 3, 7, 100, 65536, 1 << 31, -(1 << 31), (1 << 62) + 1, -(1 << 63))


def mutated_fields(choose: random.Random, model: bytes) -> bytes:
    """A model in which some numbers, names, types and operands are changed or missing."""
    proto = onnx.ModelProto.FromString(model)
    graphs = [proto.graph, *(a.g for node in proto.graph.node for a in node.attribute if a.HasField("g"))]
    for _ in range(choose.randint(1, 3)):
        graph = graphs[choose.randrange(len(graphs))]
        names = [name for node in graph.node for name in (*node.input, *node.output)] or [""]
        number, name = choose.choice(_NUMBERS), names[choose.randrange(len(names))]
        node = graph.node[choose.randrange(len(graph.node))] if graph.node else onnx.NodeProto()
        attribute = node.attribute[choose.randrange(len(node.attribute))] if node.attribute else onnx.AttributeProto()
        tensors = [*graph.initializer, *(a.t for a in node.attribute if a.HasField("t"))]
        tensor = tensors[choose.randrange(len(tensors))] if tensors else onnx.TensorProto()
        match choose.randrange(12):
            case 0 if attribute.ints:
                attribute.ints[choose.randrange(len(attribute.ints))] = number
            case 1:
                attribute.i = number
            case 2:
                attribute.type = choose.randrange(1, 11)  # pyright: ignore[reportAttributeAccessIssue]
            case 3 if tensor.dims:
                tensor.dims[choose.randrange(len(tensor.dims))] = number
            case 4:
                tensor.data_type = choose.randrange(27)
            case 5 if node.input:
                node.input[choose.randrange(len(node.input))] = name
            case 6 if node.input:
                del node.input[-1]
            case 7 if graph.node:
                other = graph.node[choose.randrange(len(graph.node))]
                node.op_type = other.op_type
            case 8 if tensor.raw_data and tensor.data_type == onnx.TensorProto.INT64:
                array = np.frombuffer(tensor.raw_data[: len(tensor.raw_data) // 8 * 8], np.int64).copy()
                if array.size:
                    array[choose.randrange(array.size)] = number
                    tensor.raw_data = array.tobytes()
            case 9 if proto.graph.input:
                shape = proto.graph.input[0].type.tensor_type.shape
                if shape.dim:
                    shape.dim[choose.randrange(len(shape.dim))].dim_value = number
            case 10:
                proto.opset_import[0].version = choose.randrange(6, 29)
            case _:
                attribute.f = choose.gauss()
                attribute.s = b"none"
    return proto.SerializeToString()


def _layers() -> bytes:
    """Two layers, one of which is an output as well."""
    rng = np.random.default_rng(1)
    nodes = [
        helper.make_node("Gemm", ["x", "w", "b"], ["h"], name="first"),
        helper.make_node("Relu", ["h"], ["r"]),
        helper.make_node("Softmax", ["r"], ["p"], axis=1),
    ]
    constants = {"w": rng.normal(size=(4, 3)).astype(np.float32), "b": rng.normal(size=3).astype(np.float32)}
    return _model(nodes, {"x": np.zeros((2, 4), np.float32)}, ["p", "r"], 17, constants)


def _loop() -> bytes:
    """`while n < 20 and y < 50: y *= 2`."""
    nodes = [
        helper.make_node("Add", ["v", "v"], ["twice"]),
        helper.make_node("Less", ["twice", "limit"], ["going"]),
    ]
    scalars = [
        helper.make_tensor_value_info("n", onnx.TensorProto.INT64, []),
        helper.make_tensor_value_info("c", onnx.TensorProto.BOOL, []),
        helper.make_tensor_value_info("v", onnx.TensorProto.FLOAT, [1]),
    ]
    results = [
        helper.make_tensor_value_info("going", onnx.TensorProto.BOOL, []),
        helper.make_tensor_value_info("twice", onnx.TensorProto.FLOAT, [1]),
    ]
    body = helper.make_graph(nodes, "body", scalars, results)
    node = helper.make_node("Loop", ["trips", "", "x"], ["y"], body=body)
    constants = {"trips": np.array(20), "limit": np.array([50], np.float32)}
    return _model([node], {"x": np.ones(1, np.float32)}, ["y"], 16, constants)


def _network() -> bytes:
    """Convolution, pooling, attributes of all kinds, shape arithmetic."""
    rng = np.random.default_rng(0)
    nodes = [
        helper.make_node("Conv", ["x", "w", "b"], ["c"], pads=[1, 1, 1, 1], strides=[2, 2], dilations=[1, 1]),
        helper.make_node("BatchNormalization", ["c", "b", "b", "b", "v"], ["n"]),
        helper.make_node("HardSwish", ["n"], ["h"]),
        helper.make_node("MaxPool", ["h"], ["m"], kernel_shape=[2, 2], strides=[2, 2], auto_pad="SAME_UPPER"),
        helper.make_node("Shape", ["m"], ["s"]),
        helper.make_node("Gather", ["s", "i"], ["n0"]),
        helper.make_node("Concat", ["n0", "rest"], ["shape"], axis=0),
        helper.make_node("Reshape", ["m", "shape"], ["r"]),
        helper.make_node("ConstantOfShape", ["shape2"], ["o"]),
        helper.make_node("Pad", ["r", "pads"], ["p"], mode="constant"),
        helper.make_node("Tile", ["p", "repeats"], ["t"]),
        helper.make_node("Range", ["z0", "z9", "z1"], ["k"]),
        helper.make_node("Expand", ["t", "shape2"], ["y"]),
    ]
    constants = {
        "w": rng.normal(size=(3, 2, 3, 3)).astype(np.float32),
        "b": rng.normal(size=3).astype(np.float32),
        "v": np.ones(3, np.float32),
        "i": np.array([0]),
        "rest": np.array([-1]),
        "shape2": np.array([2, 1, 32]),
        "pads": np.array([0, 1, 0, 3]),
        "repeats": np.array([1, 2]),
        "z0": np.array(0),
        "z9": np.array(9),
        "z1": np.array(1),
    }
    return _model(nodes, {"x": np.zeros((1, 2, 8, 8), np.float32)}, ["y", "o", "k"], 14, constants)


def _model(
    nodes: Sequence[onnx.NodeProto],
    inputs: Mapping[str, np.ndarray[Any, Any]],
    outputs: Sequence[str],
    opset: int,
    constants: Mapping[str, np.ndarray[Any, Any]],
) -> bytes:
    declared = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), list(array.shape))
        for name, array in inputs.items()
    ]
    results = [onnx.ValueInfoProto(name=name) for name in outputs]
    stored = [onnx.numpy_helper.from_array(array, name) for name, array in constants.items()]
    made = helper.make_graph(list(nodes), "model", declared, results, stored)
    whole = helper.make_model(made, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    return whole.SerializeToString()


EXAMPLES: Final = (_network(), _layers(), _loop())
