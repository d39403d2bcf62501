"""Operators of onnxruntime that its optimizer writes give what onnxruntime gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

from tests.semantics.frontends.onnx.models import Array, expected
from tests.semantics.frontends.onnx.node_cases import check
from tlx.frontends.onnx import InferenceSession

RNG = np.random.default_rng(0)


def floats(*shape: int) -> Array:
    return RNG.uniform(-2, 2, shape).astype(np.float32)


X, SCALE, SHIFT, BIAS = floats(2, 5, 16), floats(16), floats(16), floats(16)

CASES: dict[str, tuple[str, list[Array], list[str], dict[str, Any]]] = {
    "gelu": ("Gelu", [X], ["y"], {}),
    "gelu of a sum": ("BiasGelu", [X, BIAS], ["y"], {}),
    "fast gelu": ("FastGelu", [X], ["y"], {}),
    "fast gelu of a sum": ("FastGelu", [X, BIAS], ["y"], {}),
    "quick gelu": ("QuickGelu", [X], ["y"], {}),
    "sum, layer norm": ("SkipLayerNormalization", [X, floats(2, 5, 16), SCALE, SHIFT, BIAS], ["y", "", "", "s"], {}),
    "no bias": ("SkipLayerNormalization", [X, floats(2, 5, 16), SCALE], ["y"], {"epsilon": 1e-3}),
    "sum, rms norm": ("SkipSimplifiedLayerNormalization", [X, floats(2, 5, 16), SCALE, BIAS], ["y", "", "", "s"], {}),
    "rms norm": ("SimplifiedLayerNormalization", [X, SCALE], ["y"], {"epsilon": 1e-5, "axis": -1}),
    "product": ("FusedMatMul", [floats(2, 3, 4), floats(2, 5, 4)], ["y"], {"transB": 1, "alpha": 0.25}),
    "transposed product": ("FusedMatMul", [floats(4, 3), floats(4, 5)], ["y"], {"transA": 1}),
    "product of a batch": ("FusedMatMul", [floats(3, 2, 4), floats(5, 2, 4)], ["y"], {
        "transBatchA": 1, "transBatchB": 1, "transB": 1}),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_operator(name: str) -> None:
    operator, operands, outputs, attributes = CASES[name]
    inputs = {f"x{k}": x for k, x in enumerate(operands)}
    domain = "" if operator == "SimplifiedLayerNormalization" else "com.microsoft"
    node = helper.make_node(operator, list(inputs), outputs, domain=domain, **attributes)
    declared = [helper.make_tensor_value_info(k, onnx.TensorProto.FLOAT, x.shape) for k, x in inputs.items()]
    results = [helper.make_tensor_value_info(o, onnx.TensorProto.FLOAT, None) for o in outputs if o]
    graph = helper.make_graph([node], "model", declared, results)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    data = helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()
    for result, other in zip(InferenceSession(data).run(None, inputs), expected(data, inputs), strict=True):
        check(result, other, relative=2e-5, absolute=2e-5)
