"""Strided views: transposes, broadcasts, slices and reshapes of a flattened tensor that move no element.

    x          2 x 6 in memory                         shape (2, 6)   strides (6, 1)
    x.T        column-major                            shape (6, 2)   strides (1, 6)
    x[:, ::2]  every second column                     shape (2, 3)   strides (6, 2)
    row of x   the same row twice                      shape (2, 6)   strides (0, 1)

A view is *nested* if its strides, sorted, divide each other: then `llvm.tensor.load` reads it by shape, layout and
pitches, and `llvm.tensor.typeinfo` by shape, layout and padding. Every view of a graph's value is.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class View:
    """Element `x` is at `offset + sum(x[d] * strides[d])` of a flattened tensor.

    Attributes:
        shape: Extent of each dimension.
        strides: Distance in elements between neighbours along each dimension; 0 where one element is repeated.
        offset: Position of the first element.
    """

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int = 0

    @classmethod
    def dense(cls, shape: Sequence[int], order: Sequence[int] | None = None) -> View:
        """All elements without gaps; `order` lists the dimensions outermost first, by default row-major."""
        strides = [0] * len(shape)
        step = 1
        for dimension in reversed(range(len(shape)) if order is None else order):
            strides[dimension] = step
            step *= shape[dimension]
        return cls(tuple(shape), tuple(strides))

    @property
    def count(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def repeated(self) -> tuple[int, ...]:
        """The dimensions along which an element is repeated."""
        return tuple(d for d, extent in enumerate(self.shape) if extent > 1 and not self.strides[d])

    @property
    def order(self) -> tuple[int, ...]:
        """The dimensions, those with the largest strides first; extents of 1 stay where they are, or come first."""
        long = [d for d, extent in enumerate(self.shape) if extent > 1]
        by_stride = sorted(long, key=lambda d: (-self.strides[d], d))
        if by_stride == long:
            return tuple(range(len(self.shape)))
        return (*(d for d, extent in enumerate(self.shape) if extent == 1), *by_stride)

    @property
    def is_nested(self) -> bool:
        """Whether each stride divides the next larger one, and no two dimensions overlap."""
        order = [d for d in self.order if self.shape[d] > 1 and self.strides[d]]
        pairs = itertools.pairwise(order)
        return all(
            self.strides[outer] % self.strides[inner] == 0
            and self.strides[outer] >= self.strides[inner] * self.shape[inner]
            for outer, inner in pairs
        )

    def is_dense(self, order: Sequence[int]) -> bool:
        """Whether the elements lie one after the other in an order of the dimensions."""
        dense = View.dense(self.shape, order).strides
        pairs = zip(self.shape, self.strides, dense, strict=True)
        return all(extent == 1 or stride == expected for extent, stride, expected in pairs)

    def permuted(self, dimensions: Sequence[int]) -> View:
        """Dimension `k` of the result is `dimensions[k]`."""
        return replace(
            self,
            shape=tuple(self.shape[d] for d in dimensions),
            strides=tuple(self.strides[d] for d in dimensions),
        )

    def broadcast(self, shape: Sequence[int], dimensions: Sequence[int]) -> View:
        """Dimension `i` becomes `dimensions[i]` of the result; extents of 1 stretch, further dimensions repeat."""
        strides = [0] * len(shape)
        for dimension, extent, stride in zip(dimensions, self.shape, self.strides, strict=True):
            strides[dimension] = stride if extent > 1 else 0
        return replace(self, shape=tuple(shape), strides=tuple(strides))

    def first_positions(self, dimensions: Sequence[int]) -> View:
        """The view with only the first position of some dimensions, whose extent becomes 1."""
        shape = [1 if d in dimensions else extent for d, extent in enumerate(self.shape)]
        return replace(self, shape=tuple(shape))

    def sliced(self, starts: Sequence[int], shape: Sequence[int], steps: Sequence[int]) -> View:
        """`shape[d]` positions of each dimension, from `starts[d]` on, `steps[d]` apart."""
        offset = sum(start * stride for start, stride in zip(starts, self.strides, strict=True))
        strides = tuple(stride * step for stride, step in zip(self.strides, steps, strict=True))
        return View(tuple(shape), strides, self.offset + offset)

    def reshaped(self, shape: Sequence[int]) -> View | None:
        """The same elements in row-major order under another shape; None if that needs a copy.

        Both shapes are cut into the shortest pieces of equal size. A piece is a view if its dimensions lie one after
        the other, and so can be merged, as in numpy.
        """
        old = [(extent, stride) for extent, stride in zip(self.shape, self.strides, strict=True) if extent > 1]
        new = [extent for extent in shape if extent > 1]
        strides: list[int] = []
        while old:
            piece, extents = [old.pop(0)], [new.pop(0)]
            while (size := math.prod(extent for extent, _ in piece)) != math.prod(extents):
                if size < math.prod(extents):
                    piece.append(old.pop(0))
                else:
                    extents.append(new.pop(0))
            merged = all(a[1] == b[0] * b[1] for a, b in itertools.pairwise(piece))
            if len(piece) > 1 and not merged:
                return None
            inner = piece[-1][1]
            strides += [inner * math.prod(extents[k + 1 :]) for k in range(len(extents))]
        rest = iter(strides)
        return replace(self, shape=tuple(shape), strides=tuple(next(rest) if extent > 1 else 0 for extent in shape))


@dataclass(frozen=True, slots=True)
class TokenView:
    """A nested view in the terms of a token.

    Attributes:
        dimensions: The dimension of the view that each logical dimension of the token is; -1 for one of extent 1 that
            the view does not have.
        layout: Logical dimension at each memory position.
        shape: Extents, in memory order.
        pitches: Positions of each memory dimension in the flattened tensor; that of the first is 0.
        step: Stride of the outermost dimension of more than one element.
    """

    dimensions: tuple[int, ...]
    layout: tuple[int, ...]
    shape: tuple[int, ...]
    pitches: tuple[int, ...]
    step: int

    def padded(self, count: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Shape and padding in a vector of `count` elements, instead of pitches."""
        outermost = next((k for k, extent in enumerate(self.shape) if extent > 1), len(self.shape) - 1)
        whole = [pitch or extent for pitch, extent in zip(self.pitches, self.shape, strict=True)]
        whole[outermost] = count // self.step
        return tuple(whole), tuple(w - extent for w, extent in zip(whole, self.shape, strict=True))


def place(view: View) -> TokenView:
    """A nested view as shape, layout and pitches; repeated dimensions are left out.

    An innermost stride above 1 is the pitch of an innermost dimension of extent 1:

        6 x 2 of stride (8, 4)   ->   shape <6, 2, 1>, pitches <0, 2, 4>
    """
    repeated = set(view.repeated)
    dimensions = [d for d in range(len(view.shape)) if d not in repeated]
    outermost_first = [d for d in view.order if d not in repeated]
    inner = min((view.strides[d] for d in dimensions if view.shape[d] > 1), default=1)
    if not dimensions or inner > 1:
        unit = next((d for d in reversed(outermost_first) if view.shape[d] == 1), -1)
        if unit < 0:
            dimensions.append(unit)
        else:
            outermost_first.remove(unit)
        outermost_first.append(unit)
    shape = [1 if d < 0 else view.shape[d] for d in outermost_first]
    pitches = [0] * len(shape)
    following = 1
    for k in reversed(range(1, len(shape))):
        outer = next((d for d in reversed(outermost_first[:k]) if view.shape[d] > 1), None)
        if outer is not None:
            pitches[k] = view.strides[outer] // following
            following = view.strides[outer]
    layout = tuple(dimensions.index(d) for d in outermost_first)
    return TokenView(tuple(dimensions), layout, tuple(shape), tuple(pitches), following)
