"""Skipped products: the products of weights and holes, which the phases of a transposed convolution do not compute.

They are 0, or NaN if a weight is infinite or NaN. For a kernel of 4 positions, of which phase 0 uses 0 and 2, and phase
1 uses 1 and 3::

    is_nan[o, j] = -1 where the sum over c of 0 * w[o, c, j] is NaN, else 0          w[0, 3, 1] is infinite: 0 -1 0 0
    count[p, o]  = skipped[p, j] * is_nan[o, j], summed over j                       skipped: 0 1 0 1 / 1 0 1 0
    holes[p, o]  = the square root of count[p, o]: 0, or NaN where it is negative    filter 0: NaN in phase 0, 0 in 1

Both sums are matrix products with an epilogue.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from tlx.intrinsics.tensor_type import TensorType
from tlx.ir.tensors.builder import TensorBuilder
from tlx.ir.tensors.model import TensorOp
from tlx.ir.types import DOUBLE, FLOAT, I1, Type, VectorType
from tlx.ir.values import Aggregate, Value, const_float
from tlx.lower.memory.views import TensorView
from tlx.lower.operations import ElementwiseOp
from tlx.lower.to_2d.contraction.emit import emit_contraction
from tlx.lower.to_2d.contraction.problem import (
    Contraction,
    ContractionEpilogue,
    EpilogueOperand,
    OperandMemory,
)
from tlx.lower.to_2d.emission import EmitContext
from tlx.lower.to_2d.loop_nests import LoopDim
from tlx.lower.to_2d.memory.copies import constant_array, fill_zero, load_block

_IS_NAN = ElementwiseOp("fcmp", predicate="uno")
_ROOT = ElementwiseOp("call", callee="llvm.sqrt")


@dataclass(frozen=True)
class SkippedProducts:
    """The sums of skipped products: a matrix of phases x filters in memory.

    Attributes:
        memory: Its memory.
        filters: The number of filters.
    """

    memory: OperandMemory
    filters: int

    @classmethod
    def emit(
        cls,
        context: EmitContext,
        b: TensorBuilder,
        op: TensorOp,
        w: TensorView,
        element: Type,
        skipped: Sequence[Sequence[bool]],
    ) -> SkippedProducts:
        """Write the sums.

        Args:
            context: Target, temporaries and remarks.
            b: The builder.
            op: The convolution.
            w: The kernel: filters x channels x spatial dimensions.
            element: Type of the sums.
            skipped: For each phase and each position in the kernel, row-major, whether the phase skips it.
        """
        filters, channels, *spatial = w.dims
        count = math.prod(dim.extent for dim in spatial)
        nan_masks = OperandMemory(context.allocate(FLOAT, filters.extent * count, "nan.masks").pointer, FLOAT)
        zeros = TensorView.of(
            context.allocate(w.element, channels.extent, "zeros"),
            TensorType.dense(w.element, (channels.extent,)),
        )
        fill_zero(b, zeros)
        steps = TensorType.dense(FLOAT, [dim.extent for dim in spatial]).strides()
        sums = Contraction(
            "matmul",
            OperandMemory.of(zeros),
            OperandMemory.of(w),
            nan_masks,
            (LoopDim(filters.extent, (0, filters.stride, count, count)),),
            (),
            tuple(LoopDim(dim.extent, (0, dim.stride, step, step)) for dim, step in zip(spatial, steps, strict=True)),
            (LoopDim(channels.extent, (1, channels.stride, 0, 0)),),
        )
        emit_contraction(
            context, b, op, sums, ContractionEpilogue((), DOUBLE if element == DOUBLE else FLOAT, _nan_mask)
        )
        phases = len(skipped)
        flags = [const_float(FLOAT, float(flag)) for row in skipped for flag in row]
        skips = constant_array(b.module, Aggregate(VectorType(len(flags), FLOAT), tuple(flags), "<"))
        memory = OperandMemory(context.allocate(element, phases * filters.extent, "skipped").pointer, element)
        counts = Contraction(
            "matmul",
            OperandMemory(b.retype(skips, FLOAT), FLOAT),
            nan_masks,
            memory,
            (),
            (LoopDim(phases, (count, 0, filters.extent, filters.extent)),),
            (LoopDim(filters.extent, (0, count, 1, 1)),),
            (LoopDim(count, (1, 1, 0, 0)),),
        )
        emit_contraction(context, b, op, counts, ContractionEpilogue((), FLOAT, _SquareRoot(element).emit))
        return cls(memory, filters.extent)

    def with_skipped(self, phase: int, epilogue: ContractionEpilogue | None, rank: int) -> ContractionEpilogue:
        """An epilogue that adds the skipped products of a phase before another epilogue.

        Args:
            phase: The phase.
            epilogue: The other epilogue.
            rank: Rank of the result: (N, O, spatial...), or the spatial dimensions alone.
        """
        strides = tuple(int(d == 1 and self.filters > 1) for d in range(rank))
        start = phase * self.filters

        def emit(b: TensorBuilder, vector: Value, rows: int, cols: int, leaves: Sequence[EpilogueOperand]) -> Value:
            *others, leaf = leaves
            element = self.memory.element
            pointer = b.gep(element, b.gep(element, self.memory.pointer, start), leaf.offset, "skipped")
            holes = load_block(b, pointer, element, rows, cols, leaf.row_stride, leaf.col_stride)
            total = b.binary("fadd", vector, holes, "sum")
            return total if epilogue is None else epilogue.emit(b, total, rows, cols, others)

        if epilogue is None:
            return ContractionEpilogue((strides,), self.memory.element, emit, may_use_destination=True)
        return ContractionEpilogue((*epilogue.strides, strides), epilogue.element, emit, epilogue.may_use_destination)


def _nan_mask(b: TensorBuilder, vector: Value, rows: int, cols: int, _leaves: Sequence[EpilogueOperand]) -> Value:
    """-1 for each NaN, else 0."""
    is_nan = _IS_NAN.emit(b, VectorType(rows * cols, I1), [vector, vector], "is.nan")
    return b.cast("sitofp", is_nan, VectorType(rows * cols, FLOAT))


@dataclass(frozen=True)
class _SquareRoot:
    """The square root, converted to another type."""

    element: Type

    def emit(self, b: TensorBuilder, vector: Value, rows: int, cols: int, _leaves: Sequence[EpilogueOperand]) -> Value:
        """Emit the roots of a block."""
        root = _ROOT.emit(b, vector.type, [vector], "root")
        return b.cast("fpext" if self.element == DOUBLE else "fptrunc", root, VectorType(rows * cols, self.element))
