"""Convolutions in any order of dimensions, with strides, padding, dilations and groups.

Gradients of weights are convolutions with a large kernel and few positions: the sum over images, rows and columns of
products of the input's channels and the result's. Each position is a matrix product of parts of both that are not in
the border, added up over a few images at a time, which stay in the caches. Images whose channels are not innermost are
copied, and those of bfloat or half are converted to float, since each product would pack pairs of them:

    for group of images, independent of the others
      for image                                                y[group, p] += x[image, rows that p reads, channels]^T
        for position p                                                        @ w[image, rows that p needs, filters]
    y[p] = the sum of all y[group, p]

A group has sums of its own where these are small, so that threads share the groups: they share no products of so few
rows and columns.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from itertools import product
from typing import Final, Literal

from tlx.graph.core import FLOAT32, listed
from tlx.graph.indexing import Indexing
from tlx.graph.shapes import MOST_SLICES
from tlx.graph.value import DType, Operand, Value
from tlx.graph.view import View
from tlx.intrinsics.numpy_types import is_float, type_of
from tlx.ir import values as ir
from tlx.ir.control_flow import INDEPENDENT_METADATA
from tlx.ir.types import I64, vector_of

Padding = Literal["valid", "same"] | Sequence[tuple[int, int]]
_WORD: Final = 4
_MOST_POSITIONS: Final = 25
"""The most positions of a kernel that become products of their own."""
_LEAST_CHANNELS: Final = 3
"""The least columns and rows of such a product: with 3 x 32 it takes .75 of the time of one sum over channels and
kernel, with 2 x 16 1.8 times as long (3 x 3 and 5 x 5 positions, AVX-512, Xeon 6/207/2, 2026-11-29)."""
_LEAST_COLUMNS: Final = 16
"""Columns of sums that fill registers; with fewer columns, fewer rows are faster."""
_MOST_ROWS: Final = 64
"""The most rows of images that one product adds up in registers."""
_NEAR_BYTES: Final = 1 << 19
"""Bytes of images that stay in the caches while all positions read them."""
_SUMS_BYTES: Final = 1 << 20
"""The most bytes that the sums of all groups of images take."""
_ROLES: Final = {"input": "NC", "kernel": "OI", "output": "NC"}


@dataclass(frozen=True, slots=True)
class _SlidingWindow:
    """How a kernel slides over an input; each attribute has a number for each spatial dimension.

    Attributes:
        strides: How far the kernel moves from one position to the next.
        input_dilation: Distance between neighbouring elements of the input.
        kernel_dilation: Distance between neighbouring elements of the kernel.
        low, high: Padding before and after the input; negative numbers crop.
        positions: Number of positions of the kernel, which is the extent of the output.
    """

    strides: tuple[int, ...]
    input_dilation: tuple[int, ...]
    kernel_dilation: tuple[int, ...]
    low: tuple[int, ...]
    high: tuple[int, ...]
    positions: tuple[int, ...]

    def should_exchange(self, kernel: Sequence[int]) -> bool:
        """Whether to exchange input and kernel: a dilated input under a large kernel with few positions.

        Gradients of the weights of a transposed convolution have this form.
        """
        is_dilated = max(self.input_dilation) > 1 and max(self.kernel_dilation) == 1
        return is_dilated and math.prod(kernel) > math.prod(self.positions) and max(self.positions) <= MOST_SLICES

    def exchanged(self, extents: Sequence[int], kernel: Sequence[int]) -> _SlidingWindow:
        """The dilated input as kernel, which slides over the kernel in the opposite direction.

            y[r] = sum over q of x[q] * w[q * input_dilation + low - r * stride]

        With r from the last position down, the place in w rises with both q and r.
        """
        moved = [(size - 1) * step for size, step in zip(self.positions, self.strides, strict=True)]
        before = tuple(distance - low for distance, low in zip(moved, self.low, strict=True))
        every = zip(moved, extents, self.input_dilation, kernel, before, strict=True)
        after = tuple(distance + (e - 1) * gap + 1 - k - low for distance, e, gap, k, low in every)
        return _SlidingWindow(self.strides, self.kernel_dilation, self.input_dilation, before, after, self.positions)

    def overlap(self, axis: int, position: int, extent: int, kernel: int) -> tuple[int, range]:
        """Where the kernel begins at a position along a dimension, and which part of it overlaps the input."""
        start, hole = position * self.strides[axis] - self.low[axis], self.kernel_dilation[axis]
        first, last = -(min(start, 0) // hole), min(kernel, (extent - 1 - start) // hole + 1)
        return start, range(first, max(first, last))


class Convolutions(Indexing):
    """Convolutions of tensors of any rank."""

    def convolution(
        self,
        x: Operand,
        w: Operand,
        strides: int | Sequence[int] = 1,
        padding: Padding = "valid",
        input_dilation: int | Sequence[int] = 1,
        kernel_dilation: int | Sequence[int] = 1,
        groups: int = 1,
        layouts: tuple[str, str, str] | None = None,
        dtype: str | type | DType | None = None,
    ) -> Value:
        """Slide a kernel over a tensor and sum products (cross-correlation, as in machine learning).

        Args:
            x: The input.
            w: The kernel; its input channels are those of one group.
            strides: How far the kernel moves in each spatial dimension.
            padding: Zeros before and after each spatial dimension; `same` gives `ceil(extent / stride)` positions.
            input_dilation: Distance between neighbours of `x`: above 1, zeros come between them. Whether these zeros,
                and those of the padding, are multiplied is not defined: it matters for infinity and NaN only.
            kernel_dilation: Distance between neighbours of `w`.
            groups: Number of groups that channels and filters are divided into.
            layouts: Order of the dimensions of input, kernel and output, such as `("NHWC", "HWIO", "NHWC")`: N is the
                batch, C channels, O and I the kernel's output and input channels, other letters are spatial. By default
                batch and channels come first.
            dtype: Element type of the sums, at least as wide as that of the operands, and the default.
        """
        a, b = self._common_type("convolution", x, w)
        if a.rank != b.rank or a.rank < 3:
            self._fail(
                "convolution",
                f"input {listed(a.shape)} and kernel {listed(b.shape)} must have the same rank, at least 3",
            )
        spatial = "XYZUVW"[: a.rank - 2]
        names = layouts or (f"NC{spatial}", f"OI{spatial}", f"NC{spatial}")
        letters = self._spatial_letters(names, a.rank)
        to = a.dtype if dtype is None else self._dtype("convolution", dtype)
        a, b = self._widened(a, to), self._widened(b, to)
        a = self.transpose(a, [names[0].index(letter) for letter in f"NC{letters}"])
        b = self.transpose(b, [names[1].index(letter) for letter in f"OI{letters}"])
        self._check_groups(a.shape[1], b.shape[0], b.shape[1], groups)
        steps, holes, gaps = (
            self._per_dimension(name, numbers, len(letters))
            for name, numbers in (
                ("strides", strides),
                ("kernel_dilation", kernel_dilation),
                ("input_dilation", input_dilation),
            )
        )
        inner = [max((e - 1) * gap + 1, 0) for e, gap in zip(a.shape[2:], gaps, strict=True)]
        reach = [max((e - 1) * hole + 1, 0) for e, hole in zip(b.shape[2:], holes, strict=True)]
        borders = self._borders(padding, inner, reach, steps)
        extents = [extent + before + after for extent, (before, after) in zip(inner, borders, strict=True)]
        for d, (extent, size) in enumerate(zip(extents, reach, strict=True)):
            if size > extent:
                self._fail(
                    "convolution", f"the kernel spans {size} positions of spatial dimension {d}, which has {extent}"
                )
        sizes = [(e - size) // step + 1 for e, size, step in zip(extents, reach, steps, strict=True)]
        channels_first = f"NC{letters}"
        if not (a.view.count and b.view.count):
            sizes_by_letter = dict(zip(channels_first, (a.shape[0], b.shape[0], *sizes), strict=True))
            return self.full([sizes_by_letter[letter] for letter in names[2]], 0, to)
        before, after = zip(*borders, strict=True)
        window = _SlidingWindow(tuple(steps), tuple(gaps), tuple(holes), before, after, tuple(sizes))
        is_exchanged = groups == 1 and window.should_exchange(b.shape[2:])
        tensor, kernel, roles = (b, a, "CN") if is_exchanged else (a, b, "NC")
        if is_exchanged:
            window = window.exchanged(a.shape[2:], b.shape[2:])
        products = _KernelPositions.of(tensor, kernel, window, roles, letters, names[2]) if groups == 1 else None
        if products is not None:
            return self._by_positions(tensor, kernel, products, to)
        y = self._slide(tensor, kernel, window, to)
        if is_exchanged:
            for axis in range(2, y.rank):
                y = self._reversed_by_slices(y, axis)
            y = self.transpose(y, [1, 0, *range(2, y.rank)])
        return self.transpose(y, [channels_first.index(letter) for letter in names[2]])

    def _slide(self, x: Value, w: Value, window: _SlidingWindow, to: DType) -> Value:
        """A convolution with batch and channels first."""
        low, high = [0, 0, *window.low], [0, 0, *window.high]
        x = self.pad(x, low, high, [0, 0, *(gap - 1 for gap in window.input_dilation)])
        shape = (x.shape[0], w.shape[0], *window.positions)
        windows = (window.strides, [0] * len(window.positions), [hole - 1 for hole in window.kernel_dilation])
        result = vector_of(math.prod(shape), type_of(to))
        vector = self._builder.convolution(self._token_of_all(x), self._token_of_all(w), windows, result)
        return self._of_vector(vector, shape, to)

    def _by_positions(self, x: Value, w: Value, products: _KernelPositions, to: DType) -> Value:
        """A convolution as a matrix product for each position of the kernel, in the order of the output."""
        window, images = products.window, products.images_at_a_time
        x, w = self._stored_in_order(x), self._stored_in_order(w)
        sums = FLOAT32 if products.is_converted else to
        groups = products.groups(sums)
        result = self._buffer((groups, *products.shape), sums)
        self._write(result, self.full(result.shape, 0, sums))
        add, zero = self._operation("add", sums), ir.ConstInt(I64, 0)
        rounds = x.shape[1] // (images * groups)
        with self._loop_from(0, groups) as group:
            group.mark = INDEPENDENT_METADATA
            partial = self._box(result, [group.index, *[zero] * (result.rank - 1)], (1, *products.shape))
            with self._loop(rounds) if rounds > 1 else nullcontext(zero) as number:
                first = self._builder.mul(self._builder.add(self._builder.mul(group.index, rounds), number), images)
                parts = [self._images(v, first, images, is_converted=products.is_converted) for v in (x, w)]
                for position in product(*map(range, window.positions)):
                    views = products.views(position, parts[0].view, parts[1].view)
                    if not all(v.count for v in views):
                        continue
                    lhs, rhs = (self._with_view(v, view) for v, view in zip(parts, views, strict=True))
                    lhs, rhs = (lhs, rhs) if products.rows_first else (rhs, lhs)
                    value = self._product(lhs, rhs, [(d, d) for d in range(1, x.rank)], [], sums)
                    starts, shape = products.place(position)
                    box = self._box(partial, [zero, *(ir.ConstInt(I64, n) for n in starts)], (1, *shape))
                    value = self.reshape(value, (1, *shape))
                    self._write(box, self._elementwise("convolution", add, [box, value], sums) if rounds > 1 else value)
        total = self.sum(result, 0) if groups > 1 else self.reshape(result, products.shape)
        if products.is_exchanged:
            total = self.transpose(total, [*range(total.rank - 2), total.rank - 1, total.rank - 2])
        return self.convert(total, to)

    def _stored_in_order(self, x: Value) -> Value:
        """A value in memory, with the order of dimensions that it has already."""
        order = x.view.order
        stored = self._materialized(self.transpose(x, order))
        return self._with_view(stored, stored.view.permuted([order.index(d) for d in range(x.rank)]))

    def _images(self, x: Value, first: ir.Value, count: int, *, is_converted: bool) -> Value:
        """Some images of an input, with batch and channels exchanged, or a copy with channels innermost."""
        starts = [ir.ConstInt(I64, 0), first, *[ir.ConstInt(I64, 0)] * (x.rank - 2)]
        part = self._box(x, starts, (x.shape[0], count, *x.shape[2:]))
        if x.view.strides[0] == 1 and not is_converted:
            return part
        part = self._with_view(part, part.view.permuted([*range(1, x.rank), 0]))
        copy = self._copy(self.convert(part, FLOAT32) if is_converted else part)
        return self._with_view(copy, copy.view.permuted([x.rank - 1, *range(x.rank - 1)]))

    def _spatial_letters(self, names: Sequence[str], rank: int) -> str:
        """The letters of the spatial dimensions, in the order of the input's."""
        letters = "".join(letter for letter in names[0] if letter not in "NC")
        for name, (role, first) in zip(names, _ROLES.items(), strict=True):
            if sorted(name) != sorted(first + letters) or len(name) != rank:
                letters_text = f"the letters {first}{letters}, one for each of {rank} dimensions"
                self._fail("convolution", f"layout {name!r} of the {role} must consist of {letters_text}")
        return letters

    def _check_groups(self, channels: int, filters: int, group: int, groups: int) -> None:
        if groups < 1 or channels != group * groups or filters % groups:
            self._fail(
                "convolution",
                f"{groups} groups of {group} input channels, {filters} filters and an input of {channels} channels do "
                "not fit: channels must be groups * input channels, and groups must divide the filters",
            )

    def _per_dimension(self, name: str, number: int | Sequence[int], rank: int) -> list[int]:
        numbers = [number] * rank if isinstance(number, int) else list(number)
        if len(numbers) != rank or min(numbers) < 1:
            self._fail("convolution", f"{name} {listed(numbers)} must have {rank} entries of at least 1")
        return numbers

    def _borders(
        self, padding: Padding, inner: Sequence[int], reach: Sequence[int], steps: Sequence[int]
    ) -> list[tuple[int, int]]:
        if padding == "valid":
            return [(0, 0)] * len(inner)
        if padding == "same":
            extents = [-(-e // step) for e, step in zip(inner, steps, strict=True)]
            every = zip(extents, steps, reach, inner, strict=True)
            missing = [max(0, (count - 1) * step + size - e) for count, step, size, e in every]
            return [(m // 2, m - m // 2) for m in missing]
        if isinstance(padding, str) or len(padding) != len(inner):
            forms = f"'valid', 'same' or a pair for each of {len(inner)} spatial dimensions"
            self._fail("convolution", f"padding {padding!r} must be {forms}")
        return [(before, after) for before, after in padding]


@dataclass(frozen=True, slots=True)
class _KernelPositions:
    """A convolution as a matrix product for each position of the kernel.

    Attributes:
        x, w: The tensor and the kernel in memory, with batch and channels first.
        element_bytes: Bytes of an element that is multiplied.
        is_converted: Whether images are converted to float.
        window: How the kernel slides over the input.
        spatial: The output's spatial dimensions, by their number in `window`.
        rows_first: Whether the sums' last dimensions are those of `x` and `w`, in this order.
        is_exchanged: Whether this order is not the output's, so that rows of sums are long.
        is_reversed: Whether positions of the output go down.
    """

    x: View
    w: View
    element_bytes: int
    is_converted: bool
    window: _SlidingWindow
    spatial: tuple[int, ...]
    rows_first: bool
    is_exchanged: bool
    is_reversed: bool

    @classmethod
    def of(
        cls, x: Value, w: Value, window: _SlidingWindow, roles: str, letters: str, output: str
    ) -> _KernelPositions | None:
        """The products that replace a convolution; None if one sum over channels and kernel is better.

        Args:
            x: The tensor, with batch and channels first.
            w: The kernel.
            window: How the kernel slides over the input.
            roles: The output's letters of the tensor's batch and of the kernel's; `CN` if the two have been exchanged.
            letters: Those of the spatial dimensions.
            output: Order of the output.
        """
        count, channels = math.prod(window.positions), (x.shape[0], w.shape[0])
        is_gradient = (
            count <= _MOST_POSITIONS and math.prod(w.shape[2:]) > 2 * count and max(window.input_dilation) == 1
        )
        if not is_float(x.dtype) or x.dtype != w.dtype:
            return None
        if not is_gradient or min(channels) < _LEAST_CHANNELS or set(output[-2:]) != set(roles):
            return None
        spatial = tuple(letters.index(letter) for letter in output[:-2])
        in_order = output[-2:] == roles
        rows, columns = channels if in_order else reversed(channels)
        is_exchanged = columns < min(rows, _LEAST_COLUMNS)
        order = in_order != is_exchanged, is_exchanged
        size, views = x.dtype.itemsize, (_stored_view(x), _stored_view(w))
        products = cls(*views, max(size, _WORD), size < _WORD, window, spatial, *order, roles == "CN")
        return products if all(view.is_nested for view in products.parts(1)) else None

    @property
    def shape(self) -> tuple[int, ...]:
        """The sums' extents."""
        matrix = self.x.shape[0], self.w.shape[0]
        return (*(self.window.positions[d] for d in self.spatial), *(matrix if self.rows_first else reversed(matrix)))

    @property
    def images_at_a_time(self) -> int:
        """Images whose products are added up at once."""
        each = max(v.count // v.shape[1] for v in (self.x, self.w)) * self.element_bytes
        most = max(1, min(_MOST_ROWS // math.prod(self.w.shape[2:-1]), _NEAR_BYTES // each))
        counts = (n for n in range(1, most + 1) if self.x.shape[1] % n == 0)
        return max(n for n in counts if all(view.is_nested for view in self.parts(n)))

    def groups(self, sums: DType) -> int:
        """Groups of images with sums of their own: as many as there is memory for."""
        count = self.x.shape[1] // self.images_at_a_time
        most = max(1, _SUMS_BYTES // (math.prod(self.shape) * sums.itemsize))
        return max(n for n in range(1, most + 1) if count % n == 0)

    def parts(self, images: int) -> list[View]:
        """The parts of some images that are multiplied, at all positions."""
        parts = [_innermost(v, images, is_copied=self.is_converted) for v in (self.x, self.w)]
        return [
            view for position in product(*map(range, self.window.positions)) for view in self.views(position, *parts)
        ]

    def views(self, position: tuple[int, ...], x: View, w: View) -> tuple[View, View]:
        """The parts of tensor and kernel that are multiplied at a position."""
        inside = [self.window.overlap(axis, p, x.shape[2 + axis], w.shape[2 + axis]) for axis, p in enumerate(position)]
        counts = [len(part) for _, part in inside]
        holes = self.window.kernel_dilation
        starts = [start + part.start * hole for (start, part), hole in zip(inside, holes, strict=True)]
        return (
            x.sliced([0, 0, *starts], (*x.shape[:2], *counts), (1, 1, *holes)),
            w.sliced([0, 0, *(part.start for _, part in inside)], (*w.shape[:2], *counts), [1] * len(w.shape)),
        )

    def place(self, position: tuple[int, ...]) -> tuple[list[int], list[int]]:
        """Where the product of a position lies in the output: starts and shape."""
        sizes = self.window.positions
        at = [size - 1 - p if self.is_reversed else p for p, size in zip(position, sizes, strict=True)]
        return [*(at[d] for d in self.spatial), 0, 0], [*[1] * len(self.spatial), *self.shape[-2:]]


def _innermost(view: View, images: int, *, is_copied: bool) -> View:
    """Some images with channels innermost: themselves, or a copy."""
    shape = (view.shape[0], images, *view.shape[2:])
    if view.strides[0] == 1 and not is_copied:
        return View(shape, view.strides)
    return View.dense(shape, [*range(1, len(shape)), 0])


def _stored_view(x: Value) -> View:
    """The view that a value has in memory, if it is stored in the order that it has already."""
    is_stored = x.buffer.in_memory and not x.buffer.is_overwritten and not x.view.repeated
    return x.view if is_stored else View.dense(x.shape, x.view.order)
