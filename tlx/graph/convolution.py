"""Convolutions in any order of dimensions, with strides, padding, dilations and groups."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from tlx.graph.core import listed
from tlx.graph.reductions import Reductions
from tlx.graph.shapes import MOST_SLICES
from tlx.graph.value import DType, Operand, Value
from tlx.intrinsics.numpy_types import type_of
from tlx.ir.types import vector_of

Padding = Literal["valid", "same"] | Sequence[tuple[int, int]]
_ROLES: Final = {"input": "NC", "kernel": "OI", "output": "NC"}


@dataclass(frozen=True, slots=True)
class _Slide:
    """How a kernel slides over a tensor; each attribute has a number for each spatial dimension.

    Attributes:
        steps: How far the kernel moves on.
        gaps: Distance of neighbours of the tensor.
        holes: Distance of neighbours of the kernel.
        before, after: Zeros before and after the tensor; negative numbers crop.
        sizes: Positions of the kernel.
    """

    steps: tuple[int, ...]
    gaps: tuple[int, ...]
    holes: tuple[int, ...]
    before: tuple[int, ...]
    after: tuple[int, ...]
    sizes: tuple[int, ...]

    def is_shorter_exchanged(self, kernel: Sequence[int]) -> bool:
        """Whether tensor and kernel should be exchanged: a dilated tensor under a large kernel with few positions.

        So are the gradients of the weights of a transposed convolution.
        """
        is_dilated = max(self.gaps) > 1 and max(self.holes) == 1
        return is_dilated and math.prod(kernel) > math.prod(self.sizes) and max(self.sizes) <= MOST_SLICES

    def exchanged(self, extents: Sequence[int], kernel: Sequence[int]) -> _Slide:
        """The dilated tensor as kernel, which slides over the kernel in the opposite direction.

            y[r] = sum over q of x[q] * w[q * gap + before - r * step]

        With r from the last position down, the place in w rises with both q and r.
        """
        moved = [(size - 1) * step for size, step in zip(self.sizes, self.steps, strict=True)]
        before = tuple(distance - low for distance, low in zip(moved, self.before, strict=True))
        every = zip(moved, extents, self.gaps, kernel, before, strict=True)
        after = tuple(distance + (e - 1) * gap + 1 - k - low for distance, e, gap, k, low in every)
        return _Slide(self.steps, self.holes, self.gaps, before, after, self.sizes)


class Convolutions(Reductions):
    """Sliding sums of products."""

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
            strides: How far the kernel moves on in each spatial dimension.
            padding: Zeros before and after each spatial dimension; `same` gives `ceil(extent / stride)` positions.
            input_dilation: Distance of neighbours of `x`: above 1, zeros come between them. Whether these zeros, and
                those of the padding, are multiplied is not defined: it matters for infinity and NaN only.
            kernel_dilation: Distance of neighbours of `w`.
            groups: In how many groups channels and filters are divided.
            layouts: Order of the dimensions of input, kernel and output, such as `("NHWC", "HWIO", "NHWC")`: N is the
                batch, C channels, O and I the kernel's output and input channels, other letters are spatial. By default
                batch and channels come first.
            dtype: Element type of the sums, at least as wide as that of the operands, and the default.
        """
        a, b = self._pair("convolution", x, w)
        if a.rank != b.rank or a.rank < 3:
            self._fail(
                "convolution", f"input {listed(a.shape)} and kernel {listed(b.shape)} must have one rank, 3 or more"
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
        inner = [(e - 1) * gap + 1 for e, gap in zip(a.shape[2:], gaps, strict=True)]
        reach = [(e - 1) * hole + 1 for e, hole in zip(b.shape[2:], holes, strict=True)]
        borders = self._borders(padding, inner, reach, steps)
        extents = [extent + before + after for extent, (before, after) in zip(inner, borders, strict=True)]
        for d, (extent, size) in enumerate(zip(extents, reach, strict=True)):
            if size > extent:
                self._fail(
                    "convolution", f"the kernel spans {size} positions of spatial dimension {d}, which has {extent}"
                )
        sizes = [(e - size) // step + 1 for e, size, step in zip(extents, reach, steps, strict=True)]
        before, after = zip(*borders, strict=True)
        slide = _Slide(tuple(steps), tuple(gaps), tuple(holes), before, after, tuple(sizes))
        if groups == 1 and slide.is_shorter_exchanged(b.shape[2:]):
            y = self._slide(b, a, slide.exchanged(a.shape[2:], b.shape[2:]), to)
            for axis in range(2, y.rank):
                y = self._reversed_by_slices(y, axis)
            y = self.transpose(y, [1, 0, *range(2, y.rank)])
        else:
            y = self._slide(a, b, slide, to)
        channels_first = f"NC{letters}"
        return self.transpose(y, [channels_first.index(letter) for letter in names[2]])

    def _slide(self, x: Value, w: Value, slide: _Slide, to: DType) -> Value:
        """A convolution with batch and channels first."""
        low, high = [0, 0, *slide.before], [0, 0, *slide.after]
        x = self.pad(x, low, high, [0, 0, *(gap - 1 for gap in slide.gaps)])
        shape = (x.shape[0], w.shape[0], *slide.sizes)
        windows = (slide.steps, [0] * len(slide.sizes), [hole - 1 for hole in slide.holes])
        result = vector_of(math.prod(shape), type_of(to))
        vector = self._builder.convolution(self._token_of_all(x), self._token_of_all(w), windows, result)
        return self._of_vector(vector, shape, to)

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
