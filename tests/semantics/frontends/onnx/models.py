"""Small models of one operator or a few, and onnxruntime as their judge."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import helper

Array = np.ndarray[Any, np.dtype[Any]]
_IR_VERSION = 8


def model(
    operator: str,
    inputs: Mapping[str, Array],
    opset: int,
    constants: Mapping[str, Array] | None = None,
    outputs: Sequence[str] = ("y",),
    names: Sequence[str] | None = None,
    **attributes: Any,
) -> bytes:
    """A model of one node: inputs and constants are its operands, in that order or that of `names`."""
    constants = constants or {}
    order = list(names) if names is not None else [*inputs, *constants]
    node = helper.make_node(operator, order, list(outputs), name="node", **attributes)
    return graph([node], inputs, list(outputs), opset, constants)


def graph(
    nodes: Sequence[onnx.NodeProto],
    inputs: Mapping[str, Array],
    outputs: Sequence[str],
    opset: int,
    constants: Mapping[str, Array] | None = None,
    dynamic: bool = False,
) -> bytes:
    """A model of some nodes; with `dynamic`, no extent of its inputs is fixed."""
    declared = [
        helper.make_tensor_value_info(
            name,
            helper.np_dtype_to_tensor_dtype(array.dtype),
            [f"{name}_{d}" for d in range(array.ndim)] if dynamic else list(array.shape),
        )
        for name, array in inputs.items()
    ]
    results = [onnx.ValueInfoProto(name=name) for name in outputs]
    stored = [onnx.numpy_helper.from_array(array, name) for name, array in (constants or {}).items()]
    made = helper.make_graph(list(nodes), "model", declared, results, stored)
    whole = helper.make_model(made, opset_imports=[helper.make_opsetid("", opset)], ir_version=_IR_VERSION)
    return whole.SerializeToString()


def expected(data: bytes, inputs: Mapping[str, Array]) -> list[Array]:
    """What onnxruntime computes."""
    onnxruntime: Any = importlib.import_module("onnxruntime")
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    return session.run(None, dict(inputs))
