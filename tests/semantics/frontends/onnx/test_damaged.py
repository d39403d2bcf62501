"""Damaged models are errors, whatever is damaged: no other exception, no crash, no long run, no large memory."""

from __future__ import annotations

import resource
import signal
from collections.abc import Generator
from contextlib import contextmanager
from types import FrameType

import numpy as np
import onnx
import pytest
from onnx import helper

from tests.semantics.frontends.onnx.models import graph
from tests.semantics.frontends.onnx.node_cases import node_cases
from tests.semantics.frontends.onnx.test_session import loop, two_layers
from tlx.diagnostics import TlxError
from tlx.frontends.onnx import InferenceSession

SECONDS = 20
MEMORY = 6 << 30


def network() -> bytes:
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
    return graph(nodes, {"x": np.zeros((1, 2, 8, 8), np.float32)}, ["y", "o", "k"], 14, constants)


def models() -> list[bytes]:
    names = (
        "lstm_defaults",
        "resize_upsample_sizes_cubic",
        "scan9_sum",
        "qlinearconv",
        "attention_4d",
        "einsum_batch_matmul",
    )
    cases = node_cases()
    return [network(), two_layers(dynamic=False), loop(rows=True), *(cases[n].model.SerializeToString() for n in names)]


def damaged(data: bytes, rng: np.random.Generator) -> bytes:
    """A model cut short, with some bytes or fields changed, or with a part twice, elsewhere, or left out."""
    kind = rng.integers(10)
    if kind >= 5:
        return with_other_fields(data, rng)
    a, b = sorted(rng.integers(0, len(data) + 1, 2).tolist())
    if kind == 0:
        return data[:b]
    if kind == 1:
        return data[:a] + data[b:]
    if kind == 2:
        return data[:b] + data[a:]
    changed = bytearray(data)
    for _ in range(int(rng.integers(1, 4))):
        place = int(rng.integers(len(data)))
        changed[place] = int(rng.integers(256)) if kind == 3 else changed[place] ^ (1 << int(rng.integers(8)))
    return bytes(changed)


NUMBERS = (0, 1, -1, 2, 3, 7, 100, 65536, 1 << 31, -(1 << 31), (1 << 62) + 1, -(1 << 63))


def with_other_fields(data: bytes, rng: np.random.Generator) -> bytes:
    """A model in which some numbers, names, types and operands are others, or are missing."""

    def draw(count: int) -> int:
        return int(rng.integers(count))

    proto = onnx.ModelProto.FromString(data)
    graphs = [proto.graph, *(a.g for node in proto.graph.node for a in node.attribute if a.HasField("g"))]
    for _ in range(int(rng.integers(1, 4))):
        graph = graphs[draw(len(graphs))]
        names = [name for node in graph.node for name in (*node.input, *node.output)] or [""]
        number, name = NUMBERS[rng.integers(len(NUMBERS))], names[draw(len(names))]
        node = graph.node[draw(len(graph.node))] if graph.node else onnx.NodeProto()
        attribute = node.attribute[draw(len(node.attribute))] if node.attribute else onnx.AttributeProto()
        tensors = [*graph.initializer, *(a.t for a in node.attribute if a.HasField("t"))]
        tensor = tensors[draw(len(tensors))] if tensors else onnx.TensorProto()
        match draw(12):
            case 0 if attribute.ints:
                attribute.ints[draw(len(attribute.ints))] = number
            case 1:
                attribute.i = number
            case 2:
                attribute.type = int(rng.integers(1, 11))  # pyright: ignore[reportAttributeAccessIssue]
            case 3 if tensor.dims:
                tensor.dims[draw(len(tensor.dims))] = number
            case 4:
                tensor.data_type = int(rng.integers(0, 27))
            case 5 if node.input:
                node.input[draw(len(node.input))] = name
            case 6 if node.input:
                del node.input[-1]
            case 7 if graph.node:
                other = graph.node[draw(len(graph.node))]
                node.op_type = other.op_type
            case 8 if tensor.raw_data and tensor.data_type == onnx.TensorProto.INT64:
                array = onnx.numpy_helper.to_array(tensor).copy()
                if array.size:
                    array.flat[draw(array.size)] = number
                    tensor.raw_data = array.tobytes()
            case 9 if proto.graph.input:
                shape = proto.graph.input[0].type.tensor_type.shape
                if shape.dim:
                    shape.dim[draw(len(shape.dim))].dim_value = number
            case 10:
                proto.opset_import[0].version = int(rng.integers(6, 29))
            case _:
                attribute.f = float(rng.normal())
                attribute.s = b"none"
    return proto.SerializeToString()


@contextmanager
def limited() -> Generator[None]:
    """A limit of processor time for each model, and of memory."""

    def late(_: int, __: FrameType | None) -> None:
        raise AssertionError(f"not finished in {SECONDS} seconds of processor time")

    before = signal.signal(signal.SIGPROF, late)
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


@pytest.mark.parametrize("seed", [0, *(pytest.param(k, marks=pytest.mark.long) for k in range(1, 8))])
def test_damaged_models_are_errors(seed: int) -> None:
    rng = np.random.default_rng(seed)
    whole = models()
    errors: list[str] = []
    for number in range(200):
        data = damaged(whole[number % len(whole)], rng)
        with limited():
            try:
                InferenceSession(data, lazy=True).translate()
            except TlxError as error:
                errors.append(str(error))
    assert len(errors) > 100
    assert not [error for error in errors if "Traceback" in error or len(error) > 2000]
