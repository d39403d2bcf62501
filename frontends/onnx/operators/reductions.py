"""Reductions, and indices of extremes."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from tlx.frontends.onnx.model import OnnxNode
from tlx.frontends.onnx.table import operator
from tlx.frontends.onnx.tensors import Tensor, Tensors
from tlx.intrinsics.numpy_types import is_float

_EMPTY: Final = {"ReduceMax": -np.inf, "ReduceMin": np.inf, "ReduceLogSum": -np.inf, "ReduceLogSumExp": -np.inf}
_REDUCTIONS: Final = (
    "ReduceSum ReduceMean ReduceMax ReduceMin ReduceProd ReduceL1 ReduceL2 ReduceSumSquare ReduceLogSum ReduceLogSumExp"
).split()


@operator(*_REDUCTIONS)
def reduce(t: Tensors, node: OnnxNode, x: Tensor, axes: Tensor | None = None) -> Tensor:
    """Reductions over some axes, by default all; before version 13 or 18 they are an attribute."""
    keep = bool(node.integer("keepdims", 1))
    named = node.integers("axes") if axes is None else t.integers(axes, "axes")
    if not named and node.integer("noop_with_empty_axes", 0):
        along: list[int] = []
    else:
        along = t.axes(named or range(len(x.shape)), len(x.shape))
    if not math.prod(x.shape):
        return _reduce_empty(t, node, x, along, keep)
    return _reduced(t, node.operator, x, along, keep)


def _reduced(t: Tensors, name: str, x: Tensor, along: list[int], keep: bool) -> Tensor:
    if name == "ReduceMean":
        total = t.reduce("sum", t.widened(x), along, keep=keep)
        return t.convert(t.divide(total, math.prod(x.shape[d] for d in along)), x.dtype)
    if name in ("ReduceMax", "ReduceMin"):
        bits = x.dtype.kind == "b"
        names = ("any", "all") if bits else ("max", "min")
        return t.reduce(names[name == "ReduceMin"], x, along, keep=keep)
    if name == "ReduceProd":
        return t.reduce("product", x, along, keep=keep)
    if name == "ReduceLogSumExp":
        most = t.reduce("max", x, along, keep=True)
        finite = t.where(t.unary("is_finite", most), most, 0)
        total = t.reduce("sum", t.unary("exp", t.subtract(x, finite)), along, keep=True)
        result = t.add(t.unary("log", total), finite)
        return result if keep else t.reshape(result, [e for d, e in enumerate(x.shape) if d not in along])
    if name == "ReduceL1":
        x = t.unary("abs", x)
    elif name in ("ReduceL2", "ReduceSumSquare"):
        x = t.multiply(x, x)
    total = t.reduce("sum", x, along, keep=keep)
    if name == "ReduceL2":
        return (
            t.convert(t.unary("sqrt", t.convert(total, np.float64)), x.dtype)
            if not is_float(x.dtype)
            else t.unary("sqrt", total)
        )
    return t.unary("log", total) if name == "ReduceLogSum" else total


def _reduce_empty(t: Tensors, node: OnnxNode, x: Tensor, along: list[int], keep: bool) -> Tensor:
    """The reduction of a tensor without elements: the neutral element; a mean, which ONNX leaves open, is 0."""
    shape = [1 if d in along else e for d, e in enumerate(x.shape) if keep or d not in along]
    number = _EMPTY.get(node.operator, 1 if node.operator == "ReduceProd" else 0)
    if not is_float(x.dtype) and math.isinf(number):
        limits = (0, 1) if x.dtype.kind == "b" else (np.iinfo(x.dtype).min, np.iinfo(x.dtype).max)
        number = limits[number > 0]
    return np.broadcast_to(np.asarray(number, x.dtype), t.checked(shape))


@operator("ArgMax", "ArgMin")
def arg(t: Tensors, node: OnnxNode, x: Tensor) -> Tensor:
    """Index of the greatest or least element, the first or the last of several."""
    axis = t.axis(node.integer("axis", 0), len(x.shape))
    extent = x.shape[axis]
    last = node.integer("select_last_index", 0)
    if not extent:
        t.fail(f"dimension {axis} of a tensor of shape {x.shape} has no elements")
    if last:
        stops = [-1 if d == axis else e for d, e in enumerate(x.shape)]
        starts = [e - 1 if d == axis else 0 for d, e in enumerate(x.shape)]
        x = t.slice(x, starts, stops, [-1 if d == axis else 1 for d in range(len(x.shape))])
    value = t.value(x)
    index: Tensor = (t.graph.argmax if node.operator == "ArgMax" else t.graph.argmin)(value, axis)
    index = t.convert(index, np.int64)
    if last:
        index = t.subtract(extent - 1, index)
    return t.expand(index, axis) if node.integer("keepdims", 1) else index


@operator("CumSum", "CumProd")
def cumulative(t: Tensors, node: OnnxNode, x: Tensor, axis: Tensor) -> Tensor:
    """Sums or products of all elements up to each one."""
    along = t.axis(int(t.scalar(axis, "axis")), len(x.shape))
    if not math.prod(x.shape):
        return x
    name = "sum" if node.operator == "CumSum" else "product"
    reverse, exclusive = bool(node.integer("reverse", 0)), bool(node.integer("exclusive", 0))
    return t.graph.cumulative(name, t.value(x), along, reverse=reverse, exclusive=exclusive)


@operator("TopK", note="always sorted")
def top_k(t: Tensors, node: OnnxNode, x: Tensor, k: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """The greatest or least elements along an axis, and their indices; before version 10 `k` is an attribute."""
    axis = t.axis(node.integer("axis", -1), len(x.shape))
    count = node.integer("k", 0) if k is None else int(t.scalar(k, "k"))
    if not 0 <= count <= x.shape[axis]:
        t.fail(f"k is {count}: expected 0 to {x.shape[axis]}, the extent of dimension {axis}")
    shape = tuple(count if d == axis else e for d, e in enumerate(x.shape))
    if not math.prod(shape):
        return np.empty(shape, x.dtype), np.empty(shape, np.int64)
    # Equal elements keep their order, but the total order has -0 before +0: the sum with 0 is +0 for both.
    value, largest = t.value(t.add(x, 0) if is_float(x.dtype) else x), bool(node.integer("largest", 1))
    places = t.graph.iota(value.shape, axis)
    made = [t.part(v, axis, 0, count) for v in t.graph.sort(value, places, axis=axis, descending=largest)]
    return made[0], t.convert(made[1], np.int64)
