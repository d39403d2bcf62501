"""Contractions: everything that multiplies and adds, as dimensions in four roles.

    matmul        out[b, m, n] += lhs[b, m, k] * rhs[b, k, n]
    contract      several dimensions in each role
    convolution   out[n, o, y, x] += w[o, c, i, j] * input[n, c, y + i, x + j]

             lhs (w)   rhs (input)   out
    M   o    9*C       -             H*W      strides in elements; a convolution's input is an overlapping view of
    N   n    -         C*H*W         O*H*W    its memory: y and i both walk through its rows
    N   y    -         W             W
    N   x    -         1             1
    K   c    9         H*W           -
    K   i    3         W             -
    K   j    1         1             -

`choose_blocking` decides which dimensions become the matrices of 2-D products, `emit` writes them and the loops around
them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from tlx.ir.builder.tensors import TensorBuilder
from tlx.ir.tensors.model import TensorOp
from tlx.ir.types import BFLOAT, HALF, Type
from tlx.ir.values import Value
from tlx.lower.memory.views import TensorView
from tlx.lower.operations import MMA_NAMES, PRODUCT_SIGNS
from tlx.lower.to_2d.analysis.tensor_operations import MMA
from tlx.lower.to_2d.loops import LoopDim

LHS: Final = 0
RHS: Final = 1
OUT: Final = 2
ACC: Final = 3
LEAVES: Final = 4
"""Indices of the operands in the strides of a `LoopDim`; those of the epilogue's leaves follow."""


@dataclass(frozen=True)
class EpilogueOperand:
    """The part of an epilogue's operand that belongs to a block of the product.

    Attributes:
        offset: Elements from the operand's first to the part's.
        row_stride: Elements from one row to the next, 0 where all are the same.
        col_stride: As much for columns: 0 or 1.
        start: Elements from the operand's first one to what `offset` counts from.
    """

    offset: Value
    row_stride: int
    col_stride: int
    start: int = 0


EmitEpilogue = Callable[[TensorBuilder, Value, int, int, Sequence[EpilogueOperand]], Value]


class EpilogueReduction(NamedTuple):
    """A reduction behind an epilogue.

    Attributes:
        op: The operation.
        emit: What the epilogue's `emit` is, and the reduction of each row of the block: one element for each is left.
    """

    op: TensorOp
    emit: EmitEpilogue


@dataclass(frozen=True)
class ContractionEpilogue:
    """What happens to each block of a product before it is stored.

    Attributes:
        strides: For each further operand: elements per step of each logical dimension of the result, 0 where it is
            broadcast; along the last one 0 or 1.
        element: Type of the product's elements as `emit` takes them.
        emit: From the builder, the block as a row-major vector, its rows and columns and the operands' leaves to the
            vector that is stored.
        may_use_target: Whether sums may be kept where the result goes, because no leaf reads it.
        reduced: What reduces the dimensions along which the result's stride is 0; `emit` leaves that out.
    """

    strides: tuple[tuple[int, ...], ...]
    element: Type
    emit: EmitEpilogue
    may_use_target: bool = False
    reduced: EpilogueReduction | None = None

    def preserves(self, element: Type) -> bool:
        """Whether results of a type are as many and as wide as the product's elements."""
        return self.reduced is None and self.element == element


class OperandMemory(NamedTuple):
    """Where an operand lies.

    Attributes:
        pointer: Its first element's address.
        element: Its elements' type.
        vnni_group: How many rows are interleaved.
        readable_columns: Columns of a row that may be read, padding behind the last one included; 0: no padding.
        tile_columns: Columns of a tile where interleaved rows are stored tile by tile; 0: all columns are one tile.
    """

    pointer: Value
    element: Type
    vnni_group: int = 1
    readable_columns: int = 0
    tile_columns: int = 0

    @classmethod
    def of(cls, view: TensorView) -> OperandMemory:
        """The memory of a view."""
        return cls(view.storage.pointer, view.element, view.vnni_group)


class ModularStride(NamedTuple):
    """A quasi-affine access: index i is `i*step % period` regions and `i*step // period` strides from the first.

    That is a strided access to an operand that has been split into regions of every `period`-th element.
    """

    step: int
    period: int
    region: int
    stride: int

    @classmethod
    def by(cls, stride: int) -> ModularStride:
        """An ordinary stride."""
        return cls(1, 1, 0, stride)

    def offset(self, index: int) -> int:
        """Elements from the first to the one of an index."""
        far, near = divmod(index * self.step, self.period)
        return near * self.region + far * self.stride


class QuasiAffineDim(NamedTuple):
    """A summed dimension with quasi-affine strides; it always becomes a loop."""

    extent: int
    lhs: ModularStride
    rhs: ModularStride


@dataclass(frozen=True)
class Contraction:
    """A contraction to write.

    Attributes:
        kind: `matmul`, or umma, smma, usmma, summa, which say how narrow integers are extended.
        lhs, rhs: The operands.
        out: The result, apart from the operands.
        batch: Dimensions of all three: extent, and strides in lhs, rhs, out, acc and the epilogue's leaves.
        m: Dimensions of lhs and out.
        n: Dimensions of rhs and out.
        k: Dimensions of lhs and rhs, which are added up.
        acc: What the product is added to: the result's memory, element by element, or apart from it.
        quasi_affine: One more summed dimension, with quasi-affine strides.
        may_transpose: Whether blocks may be computed transposed and stored by columns: results are as wide as sums.
        ignore_matrix_unit: Whether blocks are chosen for vectors even where there is a matrix unit.
    """

    kind: str
    lhs: OperandMemory
    rhs: OperandMemory
    out: OperandMemory
    batch: tuple[LoopDim, ...]
    m: tuple[LoopDim, ...]
    n: tuple[LoopDim, ...]
    k: tuple[LoopDim, ...]
    acc: OperandMemory | None = None
    quasi_affine: QuasiAffineDim | None = None
    may_transpose: bool = False
    ignore_matrix_unit: bool = False

    @property
    def width(self) -> int:
        """Number of strides of each dimension."""
        return len(next(iter((*self.batch, *self.m, *self.n, *self.k)))[1])

    @property
    def reduces(self) -> bool:
        """Whether the epilogue reduces dimensions: those along which the result's stride is 0."""
        return any(is_reduced(walk) for walk in (*self.batch, *self.m, *self.n))

    def swapped(self) -> Contraction:
        """The transpose of the result as the product of the transposes."""
        kind = self.kind
        if kind in MMA:
            lhs, rhs = PRODUCT_SIGNS[kind]
            kind = MMA_NAMES[rhs, lhs]
        batch, m, n, k = (tuple(map(_swapped, walks)) for walks in (self.batch, self.n, self.m, self.k))
        quasi_affine = self.quasi_affine and self.quasi_affine._replace(
            lhs=self.quasi_affine.rhs, rhs=self.quasi_affine.lhs
        )
        return replace(
            self, kind=kind, lhs=self.rhs, rhs=self.lhs, batch=batch, m=m, n=n, k=k, quasi_affine=quasi_affine
        )


def is_reduced(walk: LoopDim) -> bool:
    """Whether a dimension is reduced in the epilogue."""
    extent, strides = walk
    return extent > 1 and strides[OUT] == 0


def _swapped(walk: LoopDim) -> LoopDim:
    extent, (lhs, rhs, *others) = walk
    return LoopDim(extent, (rhs, lhs, *others))


@dataclass(frozen=True)
class ContractionResult:
    """Where a contraction's result goes, and the strides of its dimensions there.

    Attributes:
        target: The result.
        acc: What the product is added to; None counts as the target.
        epilogue: What happens before it is stored.
    """

    target: TensorView
    acc: TensorView | None = None
    epilogue: ContractionEpilogue | None = None

    @property
    def element(self) -> Type:
        """Type of the sums, before the epilogue."""
        return self.target.element if self.epilogue is None else self.epilogue.element

    def free(self, dimension: int, extent: int, *, lhs: int = 0, rhs: int = 0, times: int = 1) -> LoopDim:
        """A dimension of the result, in steps of `times` positions."""
        out = self.target.dims[dimension].stride
        acc = out if self.acc is None else self.acc.dims[dimension].stride
        leaves = [] if self.epilogue is None else [strides[dimension] for strides in self.epilogue.strides]
        return LoopDim(extent, (lhs, rhs, *(stride * times for stride in (out, acc, *leaves))))

    def summed(self, extent: int, lhs: int, rhs: int) -> LoopDim:
        """A summed dimension."""
        leaves = 0 if self.epilogue is None else len(self.epilogue.strides)
        return LoopDim(extent, (lhs, rhs, 0, 0, *[0] * leaves))


def rounds_sums(element: Type) -> bool:
    """Whether a type is too narrow to keep sums in, because it would round them at each step."""
    return element in (HALF, BFLOAT)
