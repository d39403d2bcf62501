"""Reductions over dimensions and over windows."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final, cast

import numpy as np

from tlx.graph.contraction.products import Products
from tlx.graph.core import BOOL, FLOAT32, listed
from tlx.graph.value import DType, Operand, Value
from tlx.intrinsics.numpy_types import is_float, type_of
from tlx.ir.types import bits_of, vector_of

Axes = int | Sequence[int] | None
REDUCTIONS: Final = {"sum": "add", "product": "mul", "max": "max", "min": "min", "all": "and", "any": "or"}
"""The operations of `Graph.reduce`, and the intrinsics `llvm.tensor.reduce.*`."""


class Reductions(Products):
    """Sums, extremes and means."""

    def reduce(self, name: str, x: Operand, axes: Axes = None, *, keep: bool = False) -> Value:
        """One of `REDUCTIONS` over some dimensions, by default over all.

        Sums and products of half and bfloat are computed in float and rounded once. Integers wrap. `max` and `min` of a
        NaN are NaN. The reduction of no elements is the neutral element, such as 0 for a sum.

        Args:
            name: The operation.
            x: The tensor; booleans for `all` and `any`.
            axes: The dimensions; negative ones count from the end.
            keep: Whether they stay, with extent 1.
        """
        value = self._reducible(name, x)
        along = self._axes(name, axes, value.rank)
        others = [d for d in range(value.rank) if d not in along]
        shape = tuple(1 if d in along else e for d, e in enumerate(value.shape))
        outer = [value.shape[d] for d in others]
        result = value
        if not value.view.count:
            result = self.full(shape, neutral_element(name, value.dtype), value.dtype)
        elif any(value.shape[d] > 1 for d in along):
            if any(d in value.view.repeated for d in along):
                value = self._dense(value)
            once = self._without_repeats(value)
            window = [e if d in along else 1 for d, e in enumerate(once.shape)]
            reduced = self._windows(name, once, window, [1] * value.rank)
            result = self._with_view(reduced, reduced.view.broadcast(shape, range(value.rank)))
        return result if keep else self.reshape(result, outer)

    def fold(
        self,
        function: Callable[..., Any],
        x: Operand | Sequence[Operand],
        initial: Operand | Sequence[Operand],
        axes: Axes = None,
        *,
        keep: bool = False,
    ) -> Any:
        """A reduction by any associative function, over some dimensions, by default over all.

        Neighbours are combined elementwise until one element is left; their order is kept.

        Args:
            function: Takes two tensors of one shape and returns a third; of several operands, takes the first tensors
                of all and then the second ones, and returns a tuple.
            x: The tensor, or several of one shape that are reduced together.
            initial: What is combined with the first element, a scalar for each operand.
            axes: The dimensions; negative ones count from the end.
            keep: Whether they stay, with extent 1.

        Returns:
            The result; a tuple of them if `x` is a sequence.
        """
        are_several = isinstance(x, (tuple, list))
        operands = cast("Sequence[Operand]", x if are_several else (x,))
        initials = cast("Sequence[Operand]", initial if isinstance(initial, (tuple, list)) else (initial,))
        values = [self._value("fold", operand) for operand in operands]
        if not values or len(initials) != len(values) or any(v.shape != values[0].shape for v in values):
            shapes = ", ".join(listed(v.shape) for v in values)
            self._fail(
                "fold",
                f"expected operands of one shape and an initial value for each, got {shapes} and {len(initials)}",
            )
        shape = values[0].shape
        along = self._axes("fold", axes, len(shape))
        others = [d for d in range(len(shape)) if d not in along]
        outer = [shape[d] for d in others]
        extent = math.prod(shape[d] for d in along)
        starts = [self._value("fold", i, v.dtype) for i, v in zip(initials, values, strict=True)]
        parts = [self.reshape(self.transpose(v, [*along, *others]), [extent, *outer]) for v in values]
        rest: list[list[Value]] = []
        while extent > 1:
            if extent % 2:
                rest.append([part[extent - 1 :] for part in parts])
            first, second = [part[0 : extent - 1 : 2] for part in parts], [part[1:extent:2] for part in parts]
            parts = self._combined(function, first, second)
            extent //= 2
        for last in reversed(rest):
            parts = self._combined(function, parts, last)
        first = [self.broadcast(i, (1, *outer)) for i in starts]
        parts = self._combined(function, first, parts) if extent else first
        result_shape = [1 if d in along else e for d, e in enumerate(shape)] if keep else outer
        results = tuple(self.reshape(part, result_shape) for part in parts)
        return results if are_several else results[0]

    def _combined(self, function: Callable[..., Any], first: Sequence[Value], second: Sequence[Value]) -> list[Value]:
        """What the function of `fold` returns, which must be like its operands."""
        found = function(*first, *second)
        results = cast("Sequence[Operand]", found if isinstance(found, (tuple, list)) else (found,))
        values = [self._value("fold", x) for x in results]
        if [(v.shape, v.dtype) for v in values] != [(v.shape, v.dtype) for v in second]:
            wanted = ", ".join(map(repr, second))
            self._fail("fold", f"the function returns {', '.join(map(repr, values))}, expected {wanted}")
        return values

    def sum(self, x: Operand, axes: Axes = None, *, keep: bool = False) -> Value:
        """The sum over some dimensions."""
        return self.reduce("sum", x, axes, keep=keep)

    def max(self, x: Operand, axes: Axes = None, *, keep: bool = False) -> Value:
        """The greatest element."""
        return self.reduce("max", x, axes, keep=keep)

    def min(self, x: Operand, axes: Axes = None, *, keep: bool = False) -> Value:
        """The least element."""
        return self.reduce("min", x, axes, keep=keep)

    def mean(self, x: Operand, axes: Axes = None, *, keep: bool = False) -> Value:
        """The arithmetic mean; of half and bfloat it is computed in float."""
        value = self._value("mean", x)
        if not is_float(value.dtype):
            self._fail("mean", f"the operand has type {value.dtype.name}, not a float: convert it first")
        wide = self._accumulated(value)
        count = 1
        for axis in self._axes("mean", axes, value.rank):
            count *= value.shape[axis]
        return self.convert(self.divide(self.sum(wide, axes, keep=keep), count), value.dtype)

    def argmax(self, x: Operand, axis: int) -> Value:
        """Index (int32) of the greatest element along a dimension, the first of several; NaN counts as the greatest."""
        return self._arg("argmax", x, axis, "max")

    def argmin(self, x: Operand, axis: int) -> Value:
        """Index (int32) of the least element along a dimension, the first of several; NaN counts as the least."""
        return self._arg("argmin", x, axis, "min")

    def reduce_window(
        self,
        name: str,
        x: Operand,
        window: Sequence[int],
        strides: Sequence[int] | None = None,
        padding: Sequence[tuple[int, int]] | None = None,
    ) -> Value:
        """One of `REDUCTIONS` over windows that slide along the dimensions: pooling.

        Args:
            name: The operation.
            x: The tensor.
            window: Extent of the window in each dimension.
            strides: How far it moves in each dimension, by default 1.
            padding: Positions before and after each dimension, which hold the neutral element; by default none.
        """
        value = self._reducible(name, x)
        steps = [1] * value.rank if strides is None else list(strides)
        borders = [(0, 0)] * value.rank if padding is None else list(padding)
        if not len(window) == len(steps) == len(borders) == value.rank:
            self._fail(name, f"window, strides and padding must have an entry for each of {value.rank} dimensions")
        if min(*window, *steps) < 1:
            self._fail(name, f"window {listed(window)} and strides {listed(steps)} must be at least 1")
        low, high = zip(*borders, strict=True)
        padded = self.pad(value, low, high, number=neutral_element(name, value.dtype))
        for d, (extent, size) in enumerate(zip(padded.shape, window, strict=True)):
            if size > extent > 0:
                self._fail(name, f"window {listed(window)} is larger than dimension {d}, extent {extent}")
        return self._windows(name, padded, window, steps)

    def _reducible(self, name: str, x: Operand) -> Value:
        if name not in REDUCTIONS:
            self._fail("reduce", f"{name!r} is not one of {', '.join(REDUCTIONS)}")
        value = self._value(name, x)
        if (name in ("all", "any")) != (value.dtype == BOOL):
            remedy = "compare it with 0 first" if name in ("all", "any") else "convert it to an integer first"
            self._fail(name, f"the operand has type {value.dtype.name}: {remedy}")
        return value

    def _accumulated(self, x: Value) -> Value:
        """A value in the type that its sums are computed in."""
        is_narrow = is_float(x.dtype) and bits_of(type_of(x.dtype)) == 16
        return self.convert(x, FLOAT32) if is_narrow else x

    def _windows(self, name: str, x: Value, window: Sequence[int], strides: Sequence[int]) -> Value:
        if name in ("sum", "product"):
            wide = self._accumulated(x)
            if wide.dtype != x.dtype:
                return self.convert(self._windows(name, wide, window, strides), x.dtype)
        if name in ("max", "min") and x.dtype.kind == "u":  # the intrinsics compare signed numbers
            top = self.full((), 1 << (bits_of(type_of(x.dtype)) - 1), x.dtype)
            flipped = self.binary("xor", x, top)
            signed = self._make(np.dtype(f"i{x.dtype.itemsize}"), flipped.view, flipped.buffer)
            reduced = self._windows(name, signed, window, strides)
            return self.binary("xor", self._make(x.dtype, reduced.view, reduced.buffer), top)
        shape = [max((e - w) // s + 1, 0) for e, w, s in zip(x.shape, window, strides, strict=True)]
        if 0 in shape:
            return self._empty(shape, x.dtype)
        count = int(np.prod(shape, dtype=np.int64))
        result = vector_of(count, type_of(x.dtype))
        vector = self._builder.reduce(REDUCTIONS[name], self._token_of_all(x), window, strides, result)
        return self._of_vector(vector, shape, x.dtype)

    def _arg(self, name: str, x: Operand, axis: int, extreme: str) -> Value:
        """The least index of the elements that equal the extreme."""
        value = self._value(name, x)
        along = self._axis(name, axis, value.rank)
        if not value.shape[along]:
            self._fail(name, f"dimension {along} of {listed(value.shape)} has no elements")
        best = self.reduce(extreme, value, along, keep=True)
        chosen = self.equal(value, best)
        if is_float(value.dtype):
            chosen = self.binary("or", chosen, self.not_equal(value, value))
        index = self.iota(value.shape, along)
        return self.min(self.where(chosen, index, np.iinfo(np.int32).max), along)


def neutral_element(name: str, dtype: DType) -> float:
    """The element that changes no result of a reduction."""
    if name in ("sum", "any"):
        return 0
    if name in ("product", "all"):
        return 1
    if is_float(dtype):
        return float("-inf") if name == "max" else float("inf")
    if dtype == np.bool_:
        return name == "min"
    limits = np.iinfo(dtype)
    return limits.min if name == "max" else limits.max
