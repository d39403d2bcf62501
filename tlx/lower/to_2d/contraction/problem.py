"""Contractions: every operation that multiplies and adds, as dimensions in four roles.

    matmul        out[b, m, n] += lhs[b, m, k] * rhs[b, k, n]
    contract      several dimensions in each role
    convolution   out[n, o, y, x] += w[o, c, i, j] * input[n, c, y + i, x + j]

             lhs (w)   rhs (input)   out
    M   o    9*C       -             H*W      strides in elements; a convolution's input is an overlapping view of
    N   n    -         C*H*W         O*H*W    its memory: y and i both step along its rows
    N   y    -         W             W
    N   x    -         1             1
    K   c    9         H*W           -
    K   i    3         W             -
    K   j    1         1             -

`strategy` decides which dimensions become the matrices of 2-D products, `emit` writes these and the loops around them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final, NamedTuple

from tlx.intrinsics.products import axes_of, free_axes
from tlx.ir.tensors.builder import TensorBuilder
from tlx.ir.tensors.model import TensorOp
from tlx.ir.types import BFLOAT, FLOAT, HALF, Type
from tlx.ir.values import Value
from tlx.lower.memory.views import SmallFloatBytes, Storage, StridedDim, TensorView
from tlx.lower.operations import MMA_NAMES, PRODUCT_SIGNS
from tlx.lower.to_2d.analysis.tensor_operations import MMA
from tlx.lower.to_2d.loop_nests import LoopDim

LHS: Final = 0
RHS: Final = 1
OUT: Final = 2
ACC: Final = 3
LEAVES: Final = 4
"""Indices of the operands in the strides of a `LoopDim`; those of the epilogue's leaves follow."""


@dataclass(frozen=True)
class EpilogueOperand:
    """The block of an epilogue's operand that a block of the product is combined with.

    Attributes:
        offset: Offset of the block's first element in elements, from `start` on.
        row_stride: Elements from one row to the next, 0 where the operand is broadcast.
        col_stride: The same for columns: 0 or 1.
        start: Constant offset from the operand's first element.
    """

    offset: Value
    row_stride: int
    col_stride: int
    start: int = 0


EmitEpilogue = Callable[[TensorBuilder, Value, int, int, Sequence[EpilogueOperand]], Value]


class EpilogueReduction(NamedTuple):
    """A reduction of an epilogue's result.

    Attributes:
        op: The operation.
        emit: Emits the epilogue and the reduction of each row of the block to one element.
    """

    op: TensorOp
    emit: EmitEpilogue


@dataclass(frozen=True)
class ContractionEpilogue:
    """The computation on each block of a product before it is stored.

    Attributes:
        strides: For each further operand its strides along the result's logical dimensions, 0 where it is broadcast; 0
            or 1 along the last one.
        element: Type of the product's elements as `emit` takes them.
        emit: Takes the builder, the block as a row-major vector, its rows and columns and the blocks of the further
            operands; returns the vector that is stored.
        may_use_destination: Whether the result's memory may hold partial sums: no further operand reads it.
        reduced: The reduction over the dimensions along which the result's stride is 0; `emit` does not include it.
    """

    strides: tuple[tuple[int, ...], ...]
    element: Type
    emit: EmitEpilogue
    may_use_destination: bool = False
    reduced: EpilogueReduction | None = None

    def preserves(self, element: Type) -> bool:
        """Whether the result has the product's shape, and `element` as the product's element type."""
        return self.reduced is None and self.element == element

    def from_position(self, firsts: Sequence[int], steps: Sequence[int] | None = None) -> ContractionEpilogue:
        """The epilogue of a part of the result.

        Args:
            firsts: The part's first position along each logical dimension of the result.
            steps: Positions from one of the part's to the next; None: they are neighbours.
        """
        inner = self.emit
        starts = [sum(first * stride for first, stride in zip(firsts, leaf, strict=True)) for leaf in self.strides]

        def emit(b: TensorBuilder, vector: Value, rows: int, cols: int, leaves: Sequence[EpilogueOperand]) -> Value:
            moved = [replace(leaf, start=leaf.start + start) for leaf, start in zip(leaves, starts, strict=True)]
            return inner(b, vector, rows, cols, moved)

        along = steps or (1,) * len(firsts)
        strides = tuple(tuple(stride * step for stride, step in zip(leaf, along, strict=True)) for leaf in self.strides)
        return replace(self, strides=strides, emit=emit)


class OperandMemory(NamedTuple):
    """The memory of an operand.

    Attributes:
        pointer: Address of its first element.
        element: Element type.
        vnni_group: Number of rows that are interleaved; 1: none.
        readable_columns: Columns of a row that may be read, including padding; 0: no padding.
        tile_columns: Columns of a tile where interleaved rows are stored tile by tile; 0: all columns are one tile.
        small_floats: The format of bytes that are floats.
        is_constant: Whether it is constant over calls.
    """

    pointer: Value
    element: Type
    vnni_group: int = 1
    readable_columns: int = 0
    tile_columns: int = 0
    small_floats: SmallFloatBytes | None = None
    is_constant: bool = False

    @classmethod
    def of(cls, view: TensorView) -> OperandMemory:
        """The memory of a view."""
        storage, format_ = view.storage, view.small_floats
        return cls(
            storage.pointer, view.element, view.vnni_group, small_floats=format_, is_constant=storage.is_constant
        )


class ModularStride(NamedTuple):
    """A quasi-affine access: the offset of index i is `i*step % period * region + i*step // period * stride`.

    This is a strided access to an operand that is split into `period` regions, each with every `period`-th element.
    """

    step: int
    period: int
    region: int
    stride: int

    @classmethod
    def by(cls, stride: int) -> ModularStride:
        """An affine access."""
        return cls(1, 1, 0, stride)

    def offset(self, index: int) -> int:
        """The offset of an index in elements."""
        far, near = divmod(index * self.step, self.period)
        return near * self.region + far * self.stride


class QuasiAffineDim(NamedTuple):
    """A summed dimension with quasi-affine strides, which always becomes a loop."""

    extent: int
    lhs: ModularStride
    rhs: ModularStride


@dataclass(frozen=True)
class Contraction:
    """A contraction to write.

    Attributes:
        kind: `matmul`, or umma, smma, usmma, summa, which define how narrow integers are extended.
        lhs, rhs: The operands.
        out: The result, which does not overlap the operands.
        batch: Dimensions of all three: extent, and strides in lhs, rhs, out, acc and the epilogue's operands.
        m: Dimensions of lhs and out.
        n: Dimensions of rhs and out.
        k: Dimensions of lhs and rhs, which are summed.
        acc: The accumulator: the result's memory, element by element, or memory that does not overlap it.
        quasi_affine: One more summed dimension, with quasi-affine strides.
        may_transpose: Whether blocks may be computed transposed and stored by columns, as results are as wide as sums.
        ignore_matrix_unit: Whether blocks are chosen for vector registers even if there is a matrix unit.
        names: What the operation calls the operands.
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
    names: tuple[str, str] = ("lhs", "rhs")

    @property
    def width(self) -> int:
        """Number of strides of each dimension, one for each operand."""
        return len(next(iter((*self.batch, *self.m, *self.n, *self.k)))[1])

    @cached_property
    def reduces(self) -> bool:
        """Whether the epilogue reduces dimensions: those along which the result's stride is 0."""
        return any(is_reduced(dim) for dim in (*self.batch, *self.m, *self.n))

    def swapped(self) -> Contraction:
        """The same contraction with its operands swapped, for the transpose of the result."""
        kind = self.kind
        if kind in MMA:
            lhs, rhs = PRODUCT_SIGNS[kind]
            kind = MMA_NAMES[rhs, lhs]
        batch, m, n, k = (tuple(map(_swapped, dims)) for dims in (self.batch, self.n, self.m, self.k))
        quasi_affine = self.quasi_affine and self.quasi_affine._replace(
            lhs=self.quasi_affine.rhs, rhs=self.quasi_affine.lhs
        )
        names = (self.names[RHS], self.names[LHS])
        return replace(
            self,
            kind=kind,
            lhs=self.rhs,
            rhs=self.lhs,
            batch=batch,
            m=m,
            n=n,
            k=k,
            quasi_affine=quasi_affine,
            names=names,
        )


def is_reduced(dim: LoopDim) -> bool:
    """Whether a dimension is reduced in the epilogue."""
    extent, strides = dim
    return extent > 1 and strides[OUT] == 0


def _swapped(dim: LoopDim) -> LoopDim:
    extent, (lhs, rhs, *others) = dim
    return LoopDim(extent, (rhs, lhs, *others))


@dataclass(frozen=True)
class ContractionResult:
    """The destination of a contraction, which determines the strides of its dimensions in the result.

    Attributes:
        destination: The result.
        acc: The accumulator; None: the destination.
        epilogue: The epilogue of the product.
    """

    destination: TensorView
    acc: TensorView | None = None
    epilogue: ContractionEpilogue | None = None

    @property
    def element(self) -> Type:
        """Type of the sums, before the epilogue."""
        return self.destination.element if self.epilogue is None else self.epilogue.element

    def free(self, dimension: int, extent: int, *, lhs: int = 0, rhs: int = 0, times: int = 1) -> LoopDim:
        """A dimension of the result that advances by `times` positions."""
        out = self.destination.dims[dimension].stride
        acc = out if self.acc is None else self.acc.dims[dimension].stride
        leaves = [] if self.epilogue is None else [strides[dimension] for strides in self.epilogue.strides]
        return LoopDim(extent, (lhs, rhs, *(stride * times for stride in (out, acc, *leaves))))

    def summed(self, extent: int, lhs: int, rhs: int) -> LoopDim:
        """A summed dimension."""
        leaves = 0 if self.epilogue is None else len(self.epilogue.strides)
        return LoopDim(extent, (lhs, rhs, 0, 0, *[0] * leaves))


def contraction_of(
    lhs: TensorView, rhs: TensorView, dims: tuple[tuple[int, ...], ...], result: ContractionResult
) -> Contraction:
    """The contraction of two tensors, whose result has batch dimensions first, then the free ones of lhs and of rhs."""
    axes_a, axes_b, batch_a, batch_b = axes_of(dims)
    a, b = lhs.dims, rhs.dims
    free_a, free_b = free_axes(len(a), axes_a, batch_a), free_axes(len(b), axes_b, batch_b)
    first_m = len(batch_a)
    first_n = first_m + len(free_a)
    pairs = enumerate(zip(batch_a, batch_b, strict=True))
    return Contraction(
        "matmul",
        OperandMemory.of(lhs),
        OperandMemory.of(rhs),
        OperandMemory.of(result.destination),
        tuple(result.free(d, a[i].extent, lhs=a[i].stride, rhs=b[j].stride) for d, (i, j) in pairs),
        tuple(result.free(first_m + d, a[i].extent, lhs=a[i].stride) for d, i in enumerate(free_a)),
        tuple(result.free(first_n + d, b[j].extent, rhs=b[j].stride) for d, j in enumerate(free_b)),
        tuple(result.summed(a[i].extent, a[i].stride, b[j].stride) for i, j in zip(axes_a, axes_b, strict=True)),
        None if result.acc is None else OperandMemory.of(result.acc),
    )


def rounds_sums(element: Type) -> bool:
    """Whether a type is too narrow for partial sums, because it would round them at each step."""
    return element in (HALF, BFLOAT)


def sum_type(element: Type) -> Type:
    """The type of partial sums of a result type."""
    return FLOAT if rounds_sums(element) else element


def strided_view(memory: OperandMemory, dims: Sequence[StridedDim[int]]) -> TensorView:
    """A view with any dimensions, including those of overlapping windows."""
    return TensorView.strided(Storage(memory.pointer), memory.element, dims or [StridedDim(1, 1)])
