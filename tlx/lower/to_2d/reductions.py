"""Which dimensions a reduction reduces, and of what.

reduce.add of 8 x 64 x 28 x 28, window 1 x 1 x 28 x 28        dimensions 2 and 3: whole rows
reduce.max of 8 x 64 x 28 x 28, window 1 x 64 x 1 x 1         dimension 1
reduce.add of 512 x 784, window 1 x 784, of the product above dimensions 2 and 3 of the product
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from tlx.ir.tensors import TensorOp
from tlx.ir.types import BFLOAT, HALF, I1


def is_reduction(op: TensorOp) -> bool:
    """Whether an operation reduces windows."""
    return op.intrinsic.name.startswith("reduce.")


def reduced_dims(op: TensorOp) -> tuple[int, ...] | None:
    """The dimensions that a reduction leaves one element of; None if it is of another kind, or its operand is.

    The operand is row-major, without padding, and of a type in which partial results may be kept.
    """
    if not is_reduction(op):
        return None
    type_ = op.tensors[0].type
    if not type_.is_row_major or type_.is_padded or type_.element in (HALF, BFLOAT, I1):
        return None
    sizes = [size for size in zip(type_.extents, *op.dims, strict=True) if size[0] > 1]
    if not all(window == extent or window == step == 1 for extent, window, step in sizes):
        return None
    return tuple(d for d, window in enumerate(op.dims[0]) if window > 1) or None


def is_row_reduction(op: TensorOp) -> bool:
    """Whether an operation reduces whole rows: all elements of the last dimensions, which are next to each other."""
    dims = reduced_dims(op)
    return dims is not None and all(
        d in dims for d in range(dims[0], len(op.dims[0])) if op.tensors[0].type.extents[d] > 1
    )


def reduced_in(op: TensorOp, extents: Sequence[int]) -> tuple[int, ...] | None:
    """The dimensions of a row-major product of some extents that a reduction of its elements reduces."""
    type_, dims = op.tensors[0].type, reduced_dims(op)
    if dims is None or type_.shape == tuple(extents):
        return dims
    if not is_row_reduction(op):
        return None
    count = row_length(op)
    first = next((d for d in range(len(extents)) if math.prod(extents[d:]) == count), None)
    return None if first is None else tuple(d for d in range(first, len(extents)) if extents[d] > 1)


def row_dim(op: TensorOp) -> int:
    """The first dimension of a row; those before it are walked through row by row."""
    return next(d for d, window in enumerate(op.dims[0]) if window > 1)


def row_length(op: TensorOp) -> int:
    """Elements that become one."""
    return math.prod(op.dims[0])
