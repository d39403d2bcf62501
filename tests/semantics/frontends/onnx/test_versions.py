"""Operators in the versions of ONNX in which they changed give what onnxruntime gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.semantics.frontends.onnx.models import Array, expected, model
from tests.semantics.frontends.onnx.node_cases import check
from tlx.diagnostics import TlxError
from tlx.frontends.onnx import InferenceSession

RNG = np.random.default_rng(0)


def floats(*shape: int) -> Array:
    return RNG.uniform(-2, 2, shape).astype(np.float32)


def integers(*numbers: int) -> Array:
    return np.array(numbers, np.int64)


X = {"x": floats(2, 3, 4)}
IMAGE = {"x": floats(1, 4, 9, 8)}
W = floats(6, 4, 3, 3)
SEQUENCE = {"x": floats(9, 2, 5)}
LSTM = {"w": floats(2, 12, 5), "r": floats(2, 12, 3), "b": floats(2, 24), "l": np.array([9, 4], np.int32),
        "h0": floats(2, 2, 3), "c0": floats(2, 2, 3)}  # fmt: skip

CASES: dict[str, tuple[str, dict[str, Array], int, dict[str, Array], dict[str, Any]]] = {
    "softmax of a matrix": ("Softmax", X, 11, {}, {"axis": 1}),
    "softmax along an axis": ("Softmax", X, 13, {}, {"axis": 1}),
    "log softmax 11": ("LogSoftmax", X, 11, {}, {}),
    "hardmax 11": ("Hardmax", X, 11, {}, {"axis": 0}),
    "hardmax 13": ("Hardmax", X, 13, {}, {}),
    "sum 11": ("ReduceSum", X, 11, {}, {"axes": [1], "keepdims": 0}),
    "sum 13": ("ReduceSum", X, 13, {"axes": integers(-1, 0)}, {}),
    "mean 13": ("ReduceMean", X, 13, {}, {"axes": [0, 2]}),
    "mean 18": ("ReduceMean", X, 18, {"axes": integers(0, 2)}, {"keepdims": 0}),
    "norm 18": ("ReduceL2", X, 18, {"axes": integers(1)}, {}),
    "logarithm of sums": ("ReduceLogSumExp", X, 13, {}, {"axes": [1]}),
    "squeeze 11": ("Squeeze", {"x": floats(1, 3, 1)}, 11, {}, {"axes": [0]}),
    "squeeze 13": ("Squeeze", {"x": floats(1, 3, 1)}, 13, {"axes": integers(-1)}, {}),
    "unsqueeze 11": ("Unsqueeze", X, 11, {}, {"axes": [0, -1]}),
    "unsqueeze 13": ("Unsqueeze", X, 13, {"axes": integers(0, 4)}, {}),
    "clip 6": ("Clip", X, 6 + 1, {}, {"min": -1.0, "max": 0.5}),
    "clip 13": ("Clip", X, 13, {"low": np.array(-1, np.float32), "high": np.array(0.5, np.float32)}, {}),
    "pad 10": ("Pad", X, 10, {}, {"pads": [0, 1, 2, 0, 0, 1], "value": 3.0}),
    "pad 13": ("Pad", X, 13, {"pads": integers(0, 1, 2, 0, 0, 1)}, {"mode": "reflect"}),
    "pad 18": ("Pad", X, 18, {"pads": integers(1, 2), "v": np.array(2, np.float32), "a": integers(1)}, {}),
    "edge": ("Pad", X, 11, {"pads": integers(0, 1, 2, 0, 0, 1)}, {"mode": "edge"}),
    "slice 9": ("Slice", X, 9, {}, {"starts": [1, -3], "ends": [9, 4], "axes": [1, 2]}),
    "slice 13": ("Slice", X, 13, {
        "s": integers(3, -1), "e": integers(0, -9), "a": integers(1, 2), "t": integers(-1, -2)}, {}),
    "upsample 9": ("Upsample", IMAGE, 9, {"scales": np.array([1, 1, 2, 3], np.float32)}, {"mode": "nearest"}),
    "resize of one dimension by rows": ("Resize", IMAGE, 10, {"scales": np.array([1, 1, 3, 1.25], np.float32)}, {}),
    "resize 10": ("Resize", IMAGE, 10, {"scales": np.array([1, 1, 2, 1.5], np.float32)}, {"mode": "linear"}),
    "global maximum": ("GlobalMaxPool", IMAGE, 13, {}, {}),
    "convolution": ("Conv", IMAGE, 13, {"w": W, "b": floats(6)}, {"pads": [1, 0, 2, 1], "strides": [2, 1]}),
    "same convolution": ("Conv", IMAGE, 13, {"w": W}, {"auto_pad": "SAME_LOWER", "strides": [2, 2]}),
    "groups": ("Conv", IMAGE, 13, {"w": floats(8, 2, 3, 3)}, {"group": 2, "dilations": [2, 1]}),
    "depthwise": ("Conv", IMAGE, 13, {"w": floats(4, 1, 3, 3)}, {"group": 4, "pads": [1, 1, 1, 1]}),
    "transposed": ("ConvTranspose", IMAGE, 13, {"w": floats(4, 5, 2, 2), "b": floats(5)}, {"strides": [2, 2]}),
    "transposed groups": ("ConvTranspose", IMAGE, 13, {"w": floats(4, 2, 3, 3)}, {
        "group": 2, "pads": [1, 0, 1, 1], "strides": [2, 1], "output_padding": [1, 0]}),
    "maximum pooling": ("MaxPool", IMAGE, 12, {}, {"kernel_shape": [3, 2], "strides": [2, 2], "ceil_mode": 1}),
    "dilated pooling": ("MaxPool", IMAGE, 12, {}, {"kernel_shape": [2, 2], "dilations": [2, 3]}),
    "average pooling": ("AveragePool", IMAGE, 13, {}, {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}),
    "average with padding": ("AveragePool", IMAGE, 19, {}, {
        "kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "count_include_pad": 1, "strides": [2, 2], "ceil_mode": 1}),
    "normalization 9": ("BatchNormalization", IMAGE, 9, {
        "s": floats(4), "b": floats(4), "m": floats(4), "v": np.abs(floats(4))}, {}),
    "normalization 15": ("BatchNormalization", IMAGE, 15, {
        "s": floats(4), "b": floats(4), "m": floats(4), "v": np.abs(floats(4))}, {"epsilon": 1e-3}),
    "layer normalization": ("LayerNormalization", X, 17, {"s": floats(4), "b": floats(4)}, {}),
    "lstm": ("LSTM", SEQUENCE, 14, {"w": floats(1, 12, 5), "r": floats(1, 12, 3), "b": floats(1, 24)}, {
        "hidden_size": 3}),
    "lstm in both directions": ("LSTM", SEQUENCE, 11, {"w": floats(2, 12, 5), "r": floats(2, 12, 3)}, {
        "hidden_size": 3, "direction": "bidirectional"}),
    "gru": ("GRU", SEQUENCE, 14, {"w": floats(2, 9, 5), "r": floats(2, 9, 3), "b": floats(2, 18)}, {
        "hidden_size": 3, "direction": "bidirectional", "linear_before_reset": 1}),
    "rnn": ("RNN", SEQUENCE, 14, {"w": floats(1, 3, 5), "r": floats(1, 3, 3)}, {
        "hidden_size": 3, "direction": "reverse"}),
    "matmul integer": ("MatMulInteger", {"x": RNG.integers(0, 255, (3, 40), np.uint8)}, 13, {
        "w": RNG.integers(-127, 127, (40, 7), np.int8), "p": np.array(17, np.uint8)}, {}),
    "convolution integer": ("ConvInteger", {"x": RNG.integers(0, 255, (1, 4, 7, 6), np.uint8)}, 13, {
        "w": RNG.integers(0, 255, (5, 4, 3, 3), np.uint8), "p": np.array(17, np.uint8), "q": np.array(99, np.uint8)}, {
        "pads": [1, 1, 1, 1]}),
    "dequantize": ("DequantizeLinear", {"x": RNG.integers(-127, 127, (3, 4), np.int8)}, 13, {
        "s": np.abs(floats(4)), "z": np.array([1, 2, -3, 4], np.int8)}, {"axis": 1}),
    "quantize": ("QuantizeLinear", X, 13, {"s": np.array(0.02, np.float32), "z": np.array(100, np.uint8)}, {}),
    "einsum": ("Einsum", {"x": floats(2, 3, 4), "z": floats(4, 5, 2)}, 13, {}, {"equation": "bij,jkb->kib"}),
    "top k": ("TopK", X, 11, {"k": integers(2)}, {"axis": 1, "largest": 0}),
    "gather": ("Gather", X, 13, {"i": np.array([[2, 0], [-1, 1]], np.int64)}, {"axis": 1}),
    "powers": ("Pow", {"x": np.abs(floats(9))}, 13, {"p": np.array(1.7, np.float32)}, {}),
    "gelu": ("Gelu", X, 20, {}, {}),
    "places of the maxima": ("MaxPool", IMAGE, 12, {}, {
        "kernel_shape": [3, 2], "strides": [2, 2], "pads": [1, 0, 1, 1]}),
    "places of infinities": ("MaxPool", {"x": np.full((1, 1, 3, 4), -np.inf, np.float32)}, 12, {}, {
        "kernel_shape": [2, 3], "pads": [1, 1, 0, 1]}),
    "places by columns": ("MaxPool", IMAGE, 12, {}, {"kernel_shape": [2, 2], "dilations": [2, 3], "storage_order": 1}),
    "places in bytes": ("MaxPool", {"x": RNG.integers(0, 9, (2, 1, 9), np.uint8)}, 12, {}, {
        "kernel_shape": [3], "pads": [1, 1], "ceil_mode": 1, "strides": [3]}),
    "unpooling": ("MaxUnpool", {"x": floats(1, 2, 2, 2)}, 11, {
        "i": integers(0, 6, 9, 15, 19, 20, 24, 31).reshape(1, 2, 2, 2)}, {"kernel_shape": [2, 2], "strides": [2, 2]}),
    "overlapping blocks": ("Col2Im", {"x": floats(2, 12, 20)}, 18, {"e": integers(5, 6), "b": integers(2, 3)}, {
        "strides": [2, 1], "pads": [1, 0, 2, 1]}),
    "cubic grid, border": ("GridSample", {"x": floats(2, 3, 5, 4), "g": floats(2, 3, 6, 2)}, 16, {}, {
        "mode": "bicubic", "padding_mode": "border", "align_corners": 1}),
    "cubic grid, reflection": ("GridSample", {"x": floats(2, 3, 5, 4), "g": floats(2, 3, 6, 2)}, 16, {}, {
        "mode": "bicubic", "padding_mode": "reflection"}),
    "spectrogram": ("STFT", {"x": floats(2, 40, 1)}, 17, {"s": np.array(6), "w": np.hanning(8).astype(np.float32)}, {}),
    "whole spectrogram": ("STFT", {"x": floats(1, 20, 1)}, 17, {"s": np.array(3), "w": np.ones(8, np.float32)}, {
        "onesided": 0}),
    "determinant": ("Det", {"x": floats(2, 5, 5)}, 11, {}, {}),
    "determinant of a constant": ("Det", {"x": floats(1, 1)}, 11, {}, {}),
    "diagonals": ("Einsum", {"x": floats(4, 3, 4), "z": floats(3, 3)}, 12, {}, {"equation": "iji,jj->ij"}),
    "trace": ("Einsum", {"x": floats(4, 4)}, 12, {}, {"equation": "ii"}),
    "resize of bytes": ("Resize", {"x": RNG.integers(0, 255, (1, 1, 5, 4), np.uint8)}, 13, {
        "r": floats(0), "scales": np.array([1, 1, 2, 4], np.float32)}, {"mode": "linear"}),
    "resize of negative integers": ("Resize", {"x": RNG.integers(-99, 99, (1, 1, 5, 4), np.int32)}, 13, {
        "r": floats(0), "scales": np.array([1, 1, 2, 4], np.float32)}, {"mode": "linear"}),
    "nearest, positions between two elements": ("Resize", {"x": floats(1, 1, 5, 7)}, 13, {
        "r": floats(0), "scales": np.array([1, 1, 0.6, 1.7], np.float32)}, {"nearest_mode": "floor"}),
    "nearest, a size that is rounded in float": ("Resize", {"x": floats(1, 1, 10, 15)}, 13, {
        "r": floats(0), "scales": np.array([1, 1, 0.7, 1.4], np.float32)}, {}),
    "border of what is left": ("Pad", X, 19, {"pads": integers(0, -1, 1, 0, 0, -2)}, {"mode": "wrap"}),
    "transposed, larger than its windows": ("ConvTranspose", IMAGE, 13, {"w": floats(4, 2, 2, 2)}, {
        "strides": [2, 3], "output_shape": [19, 25]}),
    "lstm, clipped": ("LSTM", SEQUENCE, 14, {**LSTM, "p": floats(2, 9)}, {
        "hidden_size": 3, "direction": "bidirectional", "clip": 0.4}),
    "lstm, coupled gates": ("LSTM", SEQUENCE, 14, LSTM, {
        "hidden_size": 3, "direction": "bidirectional", "input_forget": 1}),
    "lstm, other functions": ("LSTM", SEQUENCE, 14, LSTM, {
        "hidden_size": 3, "direction": "bidirectional", "activation_alpha": [0.3, 1.2, 0.7, 0.4, 0.9],
        "activation_beta": [0.4, 0.8, 0.6, 0.2],
        "activations": ["HardSigmoid", "ScaledTanh", "Softsign", "HardSigmoid", "Elu", "Affine"]}),
    "rnn, other functions": ("RNN", SEQUENCE, 14, {"w": floats(2, 3, 5), "r": floats(2, 3, 3) / 4}, {
        "hidden_size": 3, "direction": "bidirectional", "activation_alpha": [0.2],
        "activations": ["Softplus", "ThresholdedRelu"]}),
    "top k of zeros": ("TopK", {"x": np.array([0, -0.0, 1, -0.0, 0, -1], np.float32)}, 11, {"k": integers(5)}, {}),
    "top k of zeros, ascending": ("TopK", {"x": np.array([0, -0.0, 1, -0.0, 0, -1], np.float32)}, 11, {
        "k": integers(5)}, {"largest": 0}),
    "slice from before the first element": ("Slice", X, 13, {
        "s": integers(-9), "e": integers(-99), "a": integers(1), "t": integers(-1)}, {}),
    "affine grid of a sample": ("AffineGrid", {"x": floats(1, 2, 3)}, 20, {"s": integers(1, 2, 3, 4)}, {}),
    "affine grids": ("AffineGrid", {"x": floats(2, 3, 4)}, 20, {"s": integers(2, 1, 2, 3, 4)}, {"align_corners": 1}),
    "quantize zeros": ("DynamicQuantizeLinear", {"x": np.zeros((2, 3), np.float32)}, 11, {}, {}),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_operator(name: str) -> None:
    operator, inputs, opset, constants, attributes = CASES[name]
    outputs = {
        "TopK": ("y", "i"),
        "MaxPool": ("y", "i"),
        "LSTM": ("y", "h", "c"),
        "GRU": ("y", "h"),
        "RNN": ("y", "h"),
        "DynamicQuantizeLinear": ("y", "s", "z"),
    }.get(operator, ("y",))
    data = model(operator, inputs, opset, constants, outputs, **attributes)
    results = InferenceSession(data).run(None, inputs)
    for result, other in zip(results, expected(data, inputs), strict=True):
        check(result, other, relative=2e-5, absolute=2e-5)


def test_determinants_of_half() -> None:
    """They are computed in float; onnxruntime has none."""
    x = floats(3, 4, 4).astype(np.float16)
    (result,) = InferenceSession(model("Det", {"x": x}, 11, {}, ("y",))).run(None, {"x": x})
    assert result.dtype == np.float16
    np.testing.assert_allclose(result, np.linalg.det(x.astype(np.float32)), rtol=1e-3)


def test_affine_grid_of_a_vector() -> None:
    data = model("AffineGrid", {"x": floats(1, 2, 3)}, 20, {"s": integers(4)}, ("y",))
    with pytest.raises(TlxError, match=r"matrices of shape \(1, 2, 3\) do not fit size \[4\]"):
        InferenceSession(data)
