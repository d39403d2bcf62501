"""Operators that onnxruntime's quantizer writes give what onnxruntime gives."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from tests.semantics.frontends.onnx.models import Array
from tests.support.tools import require_module
from tlx.diagnostics import TlxError
from tlx.frontends.onnx import InferenceSession

_RNG: Final = np.random.default_rng(3)
_ONNXRUNTIME: Final = "com.microsoft"


def number(value: float) -> Array:
    return np.array(value, np.float32)


def stored(*shape: int, dtype: str = "u1") -> Array:
    limits = np.iinfo(dtype)
    return _RNG.integers(limits.min, limits.max + 1, shape).astype(dtype)


def zero(value: int, dtype: str = "u1") -> Array:
    return np.array(value, dtype)


_RESULT: Final = [number(0.05), zero(101)]
_X: Final = [stored(2, 3, 4), number(0.02), zero(130)]
_IMAGE: Final = [stored(1, 3, 6, 5), number(0.02), zero(130)]
_SIGNED: Final = [stored(2, 3, 4, dtype="i1"), number(0.03), zero(-5, "i1")]

_NONE: Final = np.empty(0, np.float32)
"""An operand that is left out."""


def floats(*shape: int) -> Array:
    return _RNG.uniform(-2, 2, shape).astype(np.float32)


CASES: Final[dict[str, tuple[str, list[Array], dict[str, Any]]]] = {
    "sum": ("QLinearAdd", [*_X, stored(3, 1), number(0.04), zero(20), *_RESULT], {}),
    "sum of signed": (
        "QLinearAdd",
        [*_SIGNED, stored(4, dtype="i1"), number(0.01), zero(9, "i1"), number(0.05), zero(-3, "i1")],
        {},
    ),
    "sum of signed without a zero point": ("QLinearAdd", [*_SIGNED, *_SIGNED, number(0.05)], {}),
    "product": ("QLinearMul", [*_X, stored(2, 1, 4), number(0.04), zero(20), *_RESULT], {}),
    "sigmoid": ("QLinearSigmoid", [*_X, number(1 / 256), zero(0)], {}),
    "leaky relu": ("QLinearLeakyRelu", [*_X, *_RESULT], {"alpha": 0.3}),
    "leaky relu of signed": ("QLinearLeakyRelu", [*_SIGNED, number(0.03), zero(4, "i1")], {}),
    "softmax": ("QLinearSoftmax", [*_X, number(1 / 256), zero(0)], {"axis": -1, "opset": 13}),
    "softmax of matrices": ("QLinearSoftmax", [*_X, number(1 / 256), zero(0)], {"axis": 1, "opset": 11}),
    "concatenation": ("QLinearConcat", [*_RESULT, *_X, stored(2, 1, 4), number(0.05), zero(101)], {"axis": 1}),
    "average pool": (
        "QLinearAveragePool",
        [*_IMAGE, *_RESULT],
        {"kernel_shape": [3, 2], "strides": [2, 1], "pads": [1, 0, 1, 1]},
    ),
    "global average pool": ("QLinearGlobalAveragePool", [*_IMAGE, number(0.01), zero(99)], {"channels_last": 0}),
    "gemm": (
        "QGemm",
        [
            *[stored(5, 3), number(0.02), zero(130)],
            *[stored(4, 5, dtype="i1"), number(0.03), zero(0, "i1")],
            _RNG.integers(-999, 999, 4, np.int32),
            *[number(0.1), zero(120)],
        ],
        {"transA": 1, "transB": 1, "alpha": 0.5},
    ),
    "gemm, a scale for each column": (
        "QGemm",
        [
            *[stored(3, 5), number(0.02), zero(130)],
            *[stored(5, 4, dtype="i1"), _RNG.uniform(0.01, 0.1, 4).astype("f4"), np.zeros(4, "i1")],
            _RNG.integers(-999, 999, 4, np.int32),
        ],
        {},
    ),
    "matrix of 4 bits": (
        "MatMulNBits",
        [floats(2, 3, 70), stored(5, 5, 8), floats(25)],
        {"K": 70, "N": 5, "bits": 4, "block_size": 16},
    ),
    "matrix of 4 bits, odd zero points, a bias": (
        "MatMulNBits",
        [floats(3, 40), stored(5, 3, 8), floats(5, 3), stored(10), _NONE, floats(5)],
        {"K": 40, "N": 5, "bits": 4, "block_size": 16},
    ),
    "matrix of 4 bits, zero points that are no integers": (
        "MatMulNBits",
        [floats(3, 48), stored(5, 3, 8), floats(15), floats(15)],
        {"K": 48, "N": 5, "bits": 4, "block_size": 16},
    ),
    "matrix of 8 bits": (
        "MatMulNBits",
        [floats(3, 33), stored(7, 3, 16), floats(21), stored(21)],
        {"K": 33, "N": 7, "bits": 8, "block_size": 16},
    ),
    "matrix of 2 bits": (
        "MatMulNBits",
        [floats(4, 48), stored(6, 3, 4), floats(18), stored(6)],
        {"K": 48, "N": 6, "bits": 2, "block_size": 16},
    ),
}


def quantized_model(operator: str, operands: list[Array], attributes: dict[str, Any]) -> onnx.ModelProto:
    """A model of one operator, whose first tensor is an input."""
    at = 2 if operator == "QLinearConcat" else 0
    names = ["" if operand is _NONE else f"x{k}" for k, operand in enumerate(operands)]
    node = helper.make_node(operator, names, ["y"], domain=_ONNXRUNTIME, **attributes)
    x = helper.make_tensor_value_info(
        names[at], helper.np_dtype_to_tensor_dtype(operands[at].dtype), list(operands[at].shape)
    )
    is_float = operator == "QGemm" and len(operands) < 8
    element = np.dtype(np.float32) if is_float else operands[at].dtype
    y = helper.make_tensor_value_info("y", helper.np_dtype_to_tensor_dtype(element), None)
    constants = [
        numpy_helper.from_array(array, name)
        for k, (array, name) in enumerate(zip(operands, names, strict=True))
        if k != at and name
    ]
    graph = helper.make_graph([node], "quantized", [x], [y], constants)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid(_ONNXRUNTIME, 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


@pytest.mark.parametrize("name", CASES)
def test_operators_of_the_quantizer(name: str) -> None:
    runtime: Any = require_module("onnxruntime")
    operator, operands, attributes = CASES[name]
    model = quantized_model(operator, operands, attributes)
    feed = {model.graph.input[0].name: operands[2 if operator == "QLinearConcat" else 0]}
    (expected,) = runtime.InferenceSession(model.SerializeToString()).run(None, feed)
    (actual,) = InferenceSession(model).run(None, feed)
    assert (actual.dtype, actual.shape) == (expected.dtype, expected.shape)
    if expected.dtype == np.float32:
        # Sums of floats may be in another order.
        atol = 1e-6 * float(np.abs(expected).max()) if operator == "MatMulNBits" else 0
        np.testing.assert_allclose(actual, expected, rtol=1e-6, atol=atol)
    else:  # a number between two integers may be rounded to either
        distance = np.abs(actual.astype(int) - expected.astype(int))
        assert distance.max() <= 1
        assert distance.mean() < 0.05


def test_blocks_in_another_order_are_refused() -> None:
    operands = [floats(2, 32), stored(3, 2, 8), floats(6), stored(3), (np.arange(32) // 16)[::-1].astype(np.int32)]
    model = quantized_model("MatMulNBits", operands, {"K": 32, "N": 3, "bits": 4, "block_size": 16})
    with pytest.raises(TlxError, match="g_idx that reorders the rows is not supported"):
        InferenceSession(model)


def test_channels_last_are_refused() -> None:
    operands = [*_IMAGE, *_RESULT]
    model = quantized_model("QLinearGlobalAveragePool", operands, {"channels_last": 1})
    with pytest.raises(TlxError, match="channels_last=1 is not supported"):
        InferenceSession(model)
