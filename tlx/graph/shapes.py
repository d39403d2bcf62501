"""Operations that change shapes: views if no element moves, otherwise pad, concat and reshape."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Final, SupportsIndex, cast

from tlx.graph.core import GraphBase, listed
from tlx.graph.value import Index, Operand, Value
from tlx.graph.view import View
from tlx.intrinsics.numpy_types import type_of
from tlx.ir.types import vector_of

MOST_SLICES: Final = 16
"""The largest extent of a dimension that is reversed slice by slice."""


class Shapes(GraphBase):
    """Transposes, reshapes, broadcasts, slices, pads and concatenations."""

    def transpose(self, x: Operand, dimensions: Sequence[int] | None = None) -> Value:
        """Dimension `k` of the result is `dimensions[k]`; by default all in reverse order."""
        value = self._value("transpose", x)
        reverse = tuple(reversed(range(value.rank)))
        order = self._axes("transpose", reverse if dimensions is None else dimensions, value.rank, "dimensions")
        if len(order) != value.rank:
            self._fail("transpose", f"dimensions {listed(order)} must name all {value.rank} dimensions")
        return self._with_view(value, value.view.permuted(order))

    def reshape(self, x: Operand, shape: Sequence[int]) -> Value:
        """The same elements in row-major order; one extent may be -1."""
        value = self._value("reshape", x)
        extents = tuple(shape)
        if extents.count(-1) == 1:
            rest = -math.prod(extents)
            extents = tuple(value.view.count // rest if e == -1 and rest > 0 else e for e in extents)
        extents = self._shape("reshape", extents)
        if math.prod(extents) != value.view.count:
            sizes = f"{listed(value.shape)} has {value.view.count} elements, {listed(shape)} has {math.prod(extents)}"
            self._fail("reshape", sizes)
        if not value.view.count:
            return self._empty(extents, value.dtype)
        view = value.view.reshaped(extents)
        if view is None or not self._is_readable(value, view):
            value = self._dense(value)
            view = View.dense(extents)
        return self._with_view(value, view)

    def broadcast(self, x: Operand, shape: Sequence[int], dimensions: Sequence[int] | None = None) -> Value:
        """Repeat a tensor along further dimensions and those of extent 1.

        Args:
            x: The tensor.
            shape: Shape of the result.
            dimensions: Dimension of the result that each dimension of `x` becomes; by default the last ones.
        """
        value = self._value("broadcast", x)
        extents = self._shape("broadcast", shape)
        if dimensions is None:
            dimensions = range(len(extents) - value.rank, len(extents))
        if len(dimensions) != value.rank or len(extents) < value.rank:
            self._fail("broadcast", f"{listed(value.shape)} needs a dimension of {listed(extents)} for each of its own")
        places = self._axes("broadcast", tuple(dimensions), len(extents), "dimensions")
        for extent, place in zip(value.shape, places, strict=True):
            if extent not in (1, extents[place]):
                becomes = f"extent {extent} of {listed(value.shape)} becomes dimension {place} of {listed(extents)}"
                self._fail("broadcast", f"{becomes}: it must be 1 or {extents[place]}")
        return self._with_view(value, value.view.broadcast(extents, places))

    def expand(self, x: Operand, axis: int) -> Value:
        """Insert a dimension of extent 1 before dimension `axis`."""
        value = self._value("expand", x)
        place = self._axis("expand", axis, value.rank + 1)
        return self.reshape(value, (*value.shape[:place], 1, *value.shape[place:]))

    def slice(
        self, x: Operand, starts: Sequence[int], stops: Sequence[int], steps: Sequence[int] | None = None
    ) -> Value:
        """Positions `starts[d]` to `stops[d]` (exclusive) of each dimension, `steps[d]` apart."""
        value = self._value("slice", x)
        strides = (1,) * value.rank if steps is None else tuple(steps)
        if not len(starts) == len(stops) == len(strides) == value.rank:
            self._fail("slice", f"starts, stops and steps must have an entry for each of {value.rank} dimensions")
        for d, (start, stop, step) in enumerate(zip(starts, stops, strides, strict=True)):
            if not 0 <= start <= stop <= value.shape[d] or step < 1:
                allowed = f"expected 0 <= start <= stop <= {value.shape[d]} and a step of at least 1"
                self._fail("slice", f"{start}:{stop}:{step} in dimension {d}: {allowed}")
        shape = tuple(-(-(b - a) // s) for a, b, s in zip(starts, stops, strides, strict=True))
        if 0 in shape:
            return self._empty(shape, value.dtype)
        whole = tuple((e - 1) * s + 1 for e, s in zip(shape, strides, strict=True))
        cropped = self._cropped(value, starts, whole)
        view = cropped.view.sliced([0] * value.rank, shape, strides)
        if self._is_readable(cropped, view):
            return self._with_view(cropped, view)
        token = self._token_of_all(cropped)
        vector = self._builder.reduce(
            "max", token, [1] * value.rank, strides, vector_of(view.count, type_of(value.dtype))
        )
        return self._of_vector(vector, shape, value.dtype)

    def index(self, x: Operand, key: tuple[Index, ...]) -> Value:
        """Python's `x[key]`: integers, slices with positive steps, `...` and None."""
        value = self._value("index", x)
        named = [k for k in key if k is not None and k is not ...]
        if sum(k is ... for k in key) > 1:
            self._fail("index", "... is allowed only once")
        if len(named) > value.rank:
            self._fail("index", f"{len(named)} indices for a tensor of rank {value.rank}")
        filled: list[Index] = []
        for k in key if any(k is ... for k in key) else (*key, ...):
            filled += [slice(None)] * (value.rank - len(named)) if k is ... else [k]
        starts, stops, steps, shape = list[int](), list[int](), list[int](), list[int]()
        for k in filled:
            if k is None:
                shape.append(1)
                continue
            extent = value.shape[len(starts)]
            start, stop, step = self._range(k, len(starts), extent)
            starts, stops, steps = [*starts, start], [*stops, stop], [*steps, step]
            if isinstance(k, slice):
                shape.append(-(-(stop - start) // step))
        return self.reshape(self.slice(value, starts, stops, steps), shape)

    def pad(
        self,
        x: Operand,
        low: Sequence[int],
        high: Sequence[int],
        interior: Sequence[int] | None = None,
        number: float = 0,
    ) -> Value:
        """Elements of one value before, after and between those of each dimension; negative numbers crop.

        Args:
            x: The tensor; the result has its dimensions in the same order in memory.
            low: How many before the first element of each dimension.
            high: How many after the last.
            interior: How many between neighbours, none by default.
            number: Their value.
        """
        value = self._value("pad", x)
        between = (0,) * value.rank if interior is None else tuple(interior)
        if not len(low) == len(high) == len(between) == value.rank:
            self._fail("pad", f"low, high and interior must have an entry for each of {value.rank} dimensions")
        if any(n < 0 for n in between):
            self._fail("pad", f"interior {listed(between)} must not be negative")
        spread = [e + max(e - 1, 0) * i for e, i in zip(value.shape, between, strict=True)]
        shape = [l + e + h for l, e, h in zip(low, spread, high, strict=True)]  # noqa: E741
        if any(extent < 0 for extent in shape):
            self._fail("pad", f"low {listed(low)} and high {listed(high)} crop more than {listed(value.shape)} has")
        if not any((*low, *high, *between)):
            return value
        remaining = [e + min(l, 0) + min(h, 0) for e, l, h in zip(spread, low, high, strict=True)]  # noqa: E741
        if min(*remaining, *shape) < 1:
            return self.full(shape, number, value.dtype)
        scalar = self.full((), number, value.dtype).buffer.operand
        result = vector_of(math.prod(shape), type_of(value.dtype))
        order = tuple(range(value.rank)) if value.view.repeated else value.view.order
        below, above, inner = ([n[d] for d in order] for n in (low, high, between))
        token = self._token_of_all(self._with_view(value, value.view.permuted(order)))
        vector = self._builder.pad(token, below, above, scalar, tuple(inner) if any(inner) else None, result)
        return self._of_vector(vector, shape, value.dtype, order)

    def concatenate(self, values: Sequence[Operand], axis: int = 0) -> Value:
        """Tensors one after the other along a dimension; their other extents are equal."""
        parts = [self._value("concatenate", x) for x in values]
        if not parts:
            self._fail("concatenate", "expected at least one tensor")
        first = parts[0]
        along = self._axis("concatenate", axis, first.rank)
        for part in parts[1:]:
            if part.dtype != first.dtype:
                self._fail("concatenate", f"element types {first.dtype.name} and {part.dtype.name} differ: convert one")
            if (*part.shape[:along], *part.shape[along + 1 :]) != (*first.shape[:along], *first.shape[along + 1 :]):
                texts = f"{listed(first.shape)} and {listed(part.shape)}"
                self._fail("concatenate", f"shapes {texts} may differ only in dimension {along}")
        shape = [sum(p.shape[along] for p in parts) if d == along else e for d, e in enumerate(first.shape)]
        parts = [part for part in parts if part.view.count]
        if len(parts) < 2:
            return parts[0] if parts else self._empty(shape, first.dtype)
        result = vector_of(math.prod(shape), type_of(first.dtype))
        vector = self._builder.concat([self._token_of_all(part) for part in parts], along, result)
        return self._of_vector(vector, shape, first.dtype)

    def stack(self, values: Sequence[Operand], axis: int = 0) -> Value:
        """Tensors of one shape along a new dimension."""
        return self.concatenate([self.expand(x, axis) for x in values], axis)

    def _reversed_by_slices(self, x: Value, axis: int) -> Value:
        """The elements in the opposite order along a dimension, as a concatenation of slices."""
        key = (slice(None),) * axis
        slices = [self.index(x, (*key, slice(k, k + 1))) for k in reversed(range(x.shape[axis]))]
        return self.concatenate(slices, axis)

    def _range(self, key: Index, dimension: int, extent: int) -> tuple[int, int, int]:
        """Start, stop and step of an index."""
        if isinstance(key, slice):
            start, stop, step = key.indices(extent)
            if step < 1:
                self._fail("index", f"step {step} is negative: use reverse")
            return start, max(start, stop), step
        try:
            position = operator.index(cast("SupportsIndex", key))
        except TypeError:
            self._fail("index", f"expected an integer, a slice, ... or None, got {key!r}")
        if not -extent <= position < extent:
            self._fail("index", f"{position} is outside dimension {dimension}, extent {extent}")
        return position % extent, position % extent + 1, 1

    def _cropped(self, x: Value, starts: Sequence[int], shape: Sequence[int]) -> Value:
        """A box of a tensor: a view, or a pad by negative numbers."""
        view = x.view.sliced(starts, shape, [1] * x.rank)
        if self._is_readable(x, view):
            return self._with_view(x, view)
        once = self._without_repeats(x)
        low = [0 if d in x.view.repeated else -start for d, start in enumerate(starts)]
        high = [
            0 if d in x.view.repeated else start + e - x.shape[d]
            for d, (start, e) in enumerate(zip(starts, shape, strict=True))
        ]
        cropped = self.pad(once, low, high)
        return self._with_view(cropped, cropped.view.broadcast(shape, range(x.rank)))

    def _is_readable(self, x: Value, view: View) -> bool:
        """Whether a token can be made of a view of the same buffer: memory has an offset, a vector has not."""
        if not view.is_nested:
            return False
        if x.buffer.in_memory or x.buffer.count == 1:
            return True
        steps = [stride for stride, extent in zip(view.strides, view.shape, strict=True) if extent > 1 and stride]
        return not view.offset and x.buffer.count % max(steps, default=1) == 0
