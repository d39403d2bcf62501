"""Convolution: windows with holes, strides, channels and groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tlx.intrinsics.core import (
    Intrinsic,
    Operand,
    OperandKind,
    RuleError,
    check_extends,
    logical_paddings,
    row_major_results,
)
from tlx.intrinsics.products import matrix_product
from tlx.intrinsics.tensor_type import TensorType, vector_text
from tlx.ir.types import Type

if TYPE_CHECKING:
    from typing import Any

    import numpy as np

    from tlx.intrinsics.core import Dims
    from tlx.intrinsics.numpy_types import Array


@dataclass(frozen=True)
class Windows:
    """The positions of the kernel, with one entry per spatial dimension.

    Attributes:
        strides: Distance between neighbouring positions.
        input_steps: Distance between neighbouring elements of `x`: 1 plus the number of holes.
        kernel_steps: Distance between neighbouring elements of `w`.
    """

    strides: tuple[int, ...]
    input_steps: tuple[int, ...]
    kernel_steps: tuple[int, ...]

    @classmethod
    def of(cls, rank: int, dims: Dims) -> Windows:
        """From the vectors of a call, without their entries for batch and channels."""
        spatial = spatial_rank(rank)
        if not dims:
            ones = (1,) * spatial
            return cls(ones, ones, ones)
        strides, input_holes, kernel_holes = (numbers[-spatial:] for numbers in dims)
        return cls(strides, tuple(h + 1 for h in input_holes), tuple(h + 1 for h in kernel_holes))


def spatial_rank(rank: int) -> int:
    """Number of a tensor's spatial dimensions: both of a matrix, else all but batch and channels."""
    return 2 if rank == 2 else rank - 2


def dilated(extent: int, step: int) -> int:
    """Number of positions from the first to the last element, holes included."""
    return (extent - 1) * step + 1


def _convolution_type(tensors: Sequence[TensorType], dims: Dims, element: Type) -> list[TensorType]:
    """`NxCxI.. OxC/GxK.. -> NxOx((I-K)/S+1)..`, and `IxJ KxL -> ..` without channels."""
    x, w = tensors
    if x.rank != w.rank or x.rank < 2:
        message = f"x has rank {x.rank} and w has rank {w.rank}: both must have the same rank of at least 2"
        raise RuleError(message)
    _check_vectors(x.rank, dims)
    check_extends("x", x.element, element, "the result")
    check_extends("w", w.element, element, "the result")
    windows = Windows.of(x.rank, dims)
    first = x.rank - spatial_rank(x.rank)
    sizes = [_positions(x, w, d, windows, d - first) for d in range(first, x.rank)]
    if x.rank == 2:
        return row_major_results(element, sizes, [0, 0])
    _check_groups(x.extents[1], w.extents[0], w.extents[1])
    paddings = [logical_paddings(x)[0], logical_paddings(w)[0], *(0 for _ in sizes)]
    return row_major_results(element, (x.extents[0], w.extents[0], *sizes), paddings)


def _check_vectors(rank: int, dims: Dims) -> None:
    """Check the lengths of the vectors, that strides are positive, and that dilations are not negative."""
    spatial = spatial_rank(rank)
    counts = sorted({spatial, rank})
    for name, numbers in zip(("strides", "input_dilations", "kernel_dilations"), dims, strict=False):
        if len(numbers) not in counts:
            message = (
                f"{name} {vector_text(numbers)} must have {' or '.join(map(str, counts))} entries, as x has rank {rank}"
            )
            raise RuleError(message, name)
        least = 1 if name == "strides" else 0
        if min(numbers[-spatial:]) < least:
            message = f"{name} {vector_text(numbers)} must be at least {least} in every spatial dimension"
            raise RuleError(message, name)


def _positions(x: TensorType, w: TensorType, dimension: int, windows: Windows, spatial: int) -> int:
    """Number of positions of the kernel along a dimension."""
    extent = dilated(x.extents[dimension], windows.input_steps[spatial])
    kernel = dilated(w.extents[dimension], windows.kernel_steps[spatial])
    if kernel > extent:
        message = (
            f"w is larger than x in dimension {dimension}: {_with_holes(w.extents[dimension], kernel)} and "
            f"{_with_holes(x.extents[dimension], extent)} positions"
        )
        raise RuleError(message, "w")
    return (extent - kernel) // windows.strides[spatial] + 1


def _with_holes(extent: int, positions: int) -> str:
    return str(extent) if extent == positions else f"{positions} ({extent} and holes)"


def _check_groups(channels: int, filters: int, group: int) -> None:
    """Check that a filter's channels divide all channels, and that the number of groups divides the filters."""
    if channels % group:
        message = f"x has {channels} channels and w takes {group}: groups of {group} do not divide {channels}"
        raise RuleError(message, "w")
    groups = channels // group
    if filters % groups:
        message = f"w has {filters} filters for {groups} groups ({channels} channels of x, {group} of w): "
        raise RuleError(f"{message}{groups} does not divide {filters}", "w")


def _convolution(arrays: Sequence[Array], dims: Dims, _scalars: Sequence[Array], dtype: np.dtype[Any]) -> Array:
    """Cross-correlation: the kernel, not flipped, slides over all positions where it is entirely inside `x` ("valid").

    Matrices are one channel of two spatial dimensions. At higher ranks `x` is (N, C, spatial...), `w` is
    (O, C / groups, spatial...) and the result (N, O, spatial...); the number of groups follows from the extents, and
    filter `o` sees the channels of group `o / (O / groups)`.

    The vectors have an entry for each dimension (those for N and C are ignored) or for each spatial dimension. A
    dilation is the number of holes between neighbours, 0 for none: holes in `x` are zeros, holes in the kernel skip
    elements of `x`. Without the vectors, strides are 1 and dilations 0.

    Integers are signed and wrap. Operands narrower than the result are extended to it first.
    """
    from tlx.intrinsics.numpy_types import extend, narrow, working_type

    x, w = (extend(array, working_type(dtype)) for array in arrays)
    windows = Windows.of(x.ndim, dims)
    if x.ndim == 2:
        return narrow(_slide(x[None, None], w[None, None], windows)[0, 0], dtype)
    return narrow(_slide(x, w, windows), dtype)


def _slide(x: Array, w: Array, windows: Windows) -> Array:
    """Sum of matrix products, filters x channels times channels x windows, over the elements of the kernel."""
    import numpy as np

    x = _with_zeros(x, windows.input_steps)
    sizes = zip(x.shape[2:], w.shape[2:], windows.kernel_steps, windows.strides, strict=True)
    extents = [(i - dilated(k, step)) // stride + 1 for i, k, step, stride in sizes]
    batch, channels = x.shape[:2]
    groups = channels // w.shape[1]
    result = np.zeros((batch, groups, w.shape[0] // groups, int(np.prod(extents))), x.dtype)
    for position in np.ndindex(*w.shape[2:]):
        bounds = zip(position, windows.kernel_steps, windows.strides, extents, strict=True)
        operand = x[:, :, *(slice(p * k, p * k + s * (e - 1) + 1, s) for p, k, s, e in bounds)]
        columns = operand.reshape(batch, groups, w.shape[1], -1)
        with np.errstate(all="ignore"):
            result += matrix_product(w[:, :, *position].reshape(groups, -1, w.shape[1]), columns)
    return result.reshape(batch, w.shape[0], *extents)


def _with_zeros(x: Array, steps: Sequence[int]) -> Array:
    """Insert zeros between the elements along the spatial dimensions."""
    import numpy as np

    extents = [dilated(extent, step) for extent, step in zip(x.shape[2:], steps, strict=True)]
    result = np.zeros((*x.shape[:2], *extents), x.dtype)
    result[:, :, *(slice(None, None, step) for step in steps)] = x
    return result


_X: Final = Operand("x", OperandKind.TENSOR, "the input: a matrix, or (N, C, spatial...)")
_W: Final = Operand("w", OperandKind.TENSOR, "the kernel: a matrix, or (O, C / groups, spatial...)")

CONVOLUTIONS: Final = (
    Intrinsic(
        "convolution",
        (
            _X,
            _W,
            Operand("strides", OperandKind.DIMS, "step of the kernel in each dimension"),
            Operand("input_dilations", OperandKind.DIMS, "holes between neighbours of `x` in each dimension"),
            Operand("kernel_dilations", OperandKind.DIMS, "holes between neighbours of `w` in each dimension"),
        ),
        "vector",
        "Slides a kernel over a tensor and sums products.",
        _convolution_type,
        _convolution,
        """\
%x = call token @llvm.tensor.load(ptr elementtype(float) %p, <4 x i32> <i32 1, i32 3, i32 8, i32 8>,
                                  <4 x i32> <i32 0, i32 1, i32 2, i32 3>, <4 x i32> zeroinitializer,
                                  <4 x i32> zeroinitializer)
%w = call token @llvm.tensor.load(ptr elementtype(float) %q, <4 x i32> <i32 4, i32 3, i32 3, i32 3>,
                                  <4 x i32> <i32 0, i32 1, i32 2, i32 3>, <4 x i32> zeroinitializer,
                                  <4 x i32> zeroinitializer)
; 1 x 4 x 6 x 6
%y = call <144 x float> @llvm.tensor.convolution(token %x, token %w)
; 1 x 4 x 3 x 2: stride 2, and the kernel reads every second column of x
%z = call <24 x float> @llvm.tensor.convolution(token %x, token %w, <2 x i32> <i32 2, i32 2>,
                                                <2 x i32> zeroinitializer, <2 x i32> <i32 0, i32 1>)""",
        variants=((_X, _W),),
        narrow=(0, 1),
        is_product=True,
    ),
)
