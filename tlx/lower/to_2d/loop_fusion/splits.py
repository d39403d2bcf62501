"""Splits: how a part of a result depends on parts of the operands.

A split divides a flattened vector along one dimension of its tensor into parts of equal size::

    12 x 512 x 512, along dimension 0        outer 1,   parts 12, inner 262144
    512 x 12 x 64, along dimension 1         outer 512, parts 12, inner 64
    the same vector as 512 x 768             the same split, along dimension 1: 12 times 64 columns
    512 x 36 x 64, 24 of 36 padding          outer 512, parts 12, inner 64, gap 1536

    vector    | part 0 | part 1 | ... | part 11 | part 0 | ...      `outer` times; each part has `inner` elements there

`operand_splits` gives the parts of the operands that one part of a result reads::

    contract, batch dimension     C[h] = A[h] B[h]         both operands are split
    contract, free dimension      C[rows] = A[rows] B      the left operand is split, the right one is read as a whole
    reduce.max along rows         m[h] = max(x[h])         the operand is split along the same dimension
    broadcast                     y[h] = x                 an operand without the dimension is read as a whole
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from tlx.intrinsics.products import axes_of, free_axes
from tlx.intrinsics.tensor_type import TensorType, tensor_type
from tlx.ir.tensors.model import TensorOp
from tlx.lower.to_2d.analysis.tensor_operations import MMA, ORDINARY, POINTWISE
from tlx.lower.to_2d.fusion import is_reduction


@dataclass(frozen=True, slots=True)
class Split:
    """A flattened vector in parts: seen as outer x parts x inner, part i is all elements (., i, .).

    Attributes:
        outer: Number of pieces of a part.
        parts: Number of parts.
        inner: Elements of a piece.
        gap: Elements after the parts, `outer` times, that are in none: padding of an operand.
    """

    outer: int
    parts: int
    inner: int
    gap: int = 0

    @classmethod
    def along(cls, type_: TensorType, dimension: int, parts: int) -> Split | None:
        """A tensor split along a logical dimension; None if the parts would be unequal."""
        k = type_.position(dimension)
        extent, each = type_.shape[k] - type_.padding[k], math.prod(type_.shape[k + 1 :])
        if extent % parts or parts == 1:
            return None
        return cls(math.prod(type_.shape[:k]), parts, extent // parts * each, type_.padding[k] * each)

    def position_in(self, type_: TensorType) -> int | None:
        """The memory dimension of a tensor that is split; None if the split is along none."""
        if type_.count != self.count:
            return None
        outer = 1
        for k, extent in enumerate(type_.shape):
            if outer == self.outer and extent > 1:
                fits = type_.padding[k] * math.prod(type_.shape[k + 1 :]) == self.gap
                return k if fits and (extent - type_.padding[k]) % self.parts == 0 else None
            outer *= extent
        return None

    @property
    def pitch(self) -> int:
        """Elements from one piece of a part to the next, in the whole vector."""
        return self.parts * self.inner + self.gap

    @property
    def count(self) -> int:
        """Elements of the whole vector."""
        return self.outer * self.pitch

    @property
    def part_count(self) -> int:
        """Elements of a part."""
        return self.outer * self.inner

    def coarsened(self, factor: int) -> Split:
        """The split into parts that are `factor` times as large."""
        return Split(self.outer, self.parts // factor, self.inner * factor, self.gap)

    def part_of(self, type_: TensorType) -> TensorType:
        """The type of a part of a tensor."""
        k = self.position_in(type_)
        assert k is not None
        shape = (*type_.shape[:k], self.positions(type_, k), *type_.shape[k + 1 :])
        padding = (*type_.padding[:k], 0, *type_.padding[k + 1 :])
        return tensor_type(type_.element, shape, type_.layout, padding)

    def positions(self, type_: TensorType, k: int) -> int:
        """Positions of memory dimension `k`, which is split, in a part of a tensor."""
        return (type_.shape[k] - type_.padding[k]) // self.parts


OperandSplits = tuple[Split | None, ...]
"""The split of each tensor operand; None: every part of the result reads the whole operand."""

_Dims = Sequence[int | None] | None


def operand_splits(op: TensorOp, split: Split) -> OperandSplits | None:
    """The splits of an operation's operands, given that of its result; None if its parts cannot be computed separately.

    The result of a store is the tensor that it stores. Other results have no gap, as no part would write the padding.
    """
    if split.gap and op.result is not None:
        return None
    name, result = op.intrinsic.name, op.result or op.tensors[0].type
    if name in POINTWISE or name == "tovector" or op.pointer is not None:
        same = all(tensor.type.count == split.count for tensor in op.tensors)
        fits = (name == ORDINARY and not split.gap) or split.position_in(op.tensors[0].type) is not None
        return (split,) * len(op.tensors) if same and fits else None
    k = split.position_in(result)
    if k is None:
        return None
    if name == "reshape.permute":
        return _permuted(op, split)
    rule = _RULES.get("reduce" if is_reduction(op) else "mma" if name in MMA else name)
    dims = rule(op, result.layout[k]) if rule is not None else None
    if dims is None:
        return None
    splits: list[Split | None] = []
    for tensor, dimension in zip(op.tensors, dims, strict=True):
        part = None if dimension is None else Split.along(tensor.type, dimension, split.parts)
        if dimension is not None and part is None:
            return None
        splits.append(part)
    return tuple(splits)


def result_splits(op: TensorOp, operand: int, split: Split) -> Iterator[Split]:
    """The splits of a result for which an operand is split in a given way."""
    if op.result is None or op.intrinsic.name == ORDINARY:
        candidates = [split]
    else:
        along = (Split.along(op.result, d, split.parts) for d in range(op.result.rank))
        candidates = [candidate for candidate in along if candidate is not None]
    for candidate in candidates:
        splits = operand_splits(op, candidate)
        if splits is not None and splits[operand] == split:
            yield candidate


def part_dims(op: TensorOp, split: Split) -> tuple[tuple[int, ...], ...]:
    """The constant operands of an operation that computes a part of its result: those with its extents change."""
    if op.intrinsic.name == "broadcast":
        assert op.result is not None
        return (split.part_of(op.result).extents, op.dims[1])
    if op.intrinsic.name == "reshape.permute":
        assert op.result is not None
        return (op.dims[0], split.part_of(op.result).extents)
    return op.dims


def _permuted(op: TensorOp, split: Split) -> OperandSplits | None:
    (tensor,), permutation = op.tensors, op.dims[0]
    if tensor.type.is_padded:
        return None
    extents = [tensor.type.extents[d] for d in permutation]
    k = split.position_in(TensorType.dense(tensor.type.element, extents))
    part = None if k is None else Split.along(tensor.type, permutation[k], split.parts)
    return None if part is None else (part,)


def _matmul_dims(op: TensorOp, dimension: int) -> _Dims:
    rank = op.tensors[0].type.rank
    if dimension == rank - 2:
        return dimension, None
    return (None, dimension) if dimension == rank - 1 else (dimension, dimension)


def _mma_dims(_op: TensorOp, dimension: int) -> _Dims:
    return (0, 0, None) if dimension == 0 else (1, None, 1)


def _contract_dims(op: TensorOp, dimension: int) -> _Dims:
    axes_a, axes_b, batch_a, batch_b = axes_of(op.dims)
    free_a = free_axes(op.tensors[0].type.rank, axes_a, batch_a)
    free_b = free_axes(op.tensors[1].type.rank, axes_b, batch_b)
    if op.result is None or op.result.rank != len(batch_a) + len(free_a) + len(free_b):
        return None
    return [*zip(batch_a, batch_b, strict=True), *((d, None) for d in free_a), *((None, d) for d in free_b)][dimension]


def _broadcast_dims(op: TensorOp, dimension: int) -> _Dims:
    if op.scalars or op.result is None:
        return None
    source, places = op.tensors[0].type, op.dims[1]
    if dimension not in places:
        return (None,)
    place = places.index(dimension)
    return (place if source.extents[place] > 1 else None,)


def _reduce_dims(op: TensorOp, dimension: int) -> _Dims:
    window, steps = op.dims
    return (dimension,) if window[dimension] == steps[dimension] == 1 else None


def _pad_dims(op: TensorOp, dimension: int) -> _Dims:
    return (dimension,) if not any(numbers[dimension] for numbers in op.dims) else None


def _concat_dims(op: TensorOp, dimension: int) -> _Dims:
    return None if op.dims[-1][0] == dimension else (dimension,) * len(op.tensors)


def _same_dim(_op: TensorOp, dimension: int) -> _Dims:
    return (dimension,)


_RULES: Final[dict[str, Callable[[TensorOp, int], _Dims]]] = {
    "matmul": _matmul_dims,
    "mma": _mma_dims,
    "contract": _contract_dims,
    "broadcast": _broadcast_dims,
    "reduce": _reduce_dims,
    "pad": _pad_dims,
    "concat": _concat_dims,
    "transpose": _same_dim,
}
