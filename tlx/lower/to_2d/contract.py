"""`llvm.tensor.contract`: products summed over pairs of dimensions.

Rewrite of a 64 x 5 x 64 tensor, whose rows lie 80 apart, times a 5 x 64 x 64 one, over the dimensions of 5 and of 64::

    %c = call <4096 x half> @llvm.tensor.contract(token %a, token %b, <i32 1, i32 2>, <i32 0, i32 1>)
    ->
    sums = product of 64 x 64 matrices of %a, rows 400 apart, and %b           as float
    k.loop:                                                                    ; 4 more of them
      sums += product of such matrices, those of %a 80 further each time, those of %b 4096
    %c.buf = sums                                                              rounded to half

Which dimensions are multiplied as matrices and which become loops is decided by `tlx.lower.to_2d.blocking`.
"""

from __future__ import annotations

from tlx.intrinsics.contraction import axes_of, free_axes
from tlx.ir.tensor_builder import TensorBuilder
from tlx.ir.tensors import TensorOp
from tlx.lower.to_2d.blocks import emit_contraction
from tlx.lower.to_2d.contraction import Contraction, Epilogue, Memory, Result
from tlx.lower.to_2d.plan import Plan
from tlx.lower.to_2d.views import View


def lower_contract(plan: Plan, b: TensorBuilder, op: TensorOp, target: View, epilogue: Epilogue | None = None) -> None:
    """Write the contraction of two tensors to `target`."""
    lhs, rhs = (plan.view(tensor) for tensor in op.tensors)
    emit_contraction(plan, b, op, _contraction(lhs, rhs, op.dims, Result(target, None, epilogue)), epilogue)


def _contraction(lhs: View, rhs: View, dims: tuple[tuple[int, ...], ...], result: Result) -> Contraction:
    """Dimensions by role; those of the result are batch, free ones of lhs, free ones of rhs."""
    axes_a, axes_b, batch_a, batch_b = axes_of(dims)
    a, b = lhs.dims, rhs.dims
    free_a, free_b = free_axes(len(a), axes_a, batch_a), free_axes(len(b), axes_b, batch_b)
    first_m = len(batch_a)
    first_n = first_m + len(free_a)
    pairs = enumerate(zip(batch_a, batch_b, strict=True))
    return Contraction(
        "matmul",
        Memory.of(lhs),
        Memory.of(rhs),
        Memory.of(result.target),
        tuple(result.free(d, a[i].extent, lhs=a[i].stride, rhs=b[j].stride) for d, (i, j) in pairs),
        tuple(result.free(first_m + d, a[i].extent, lhs=a[i].stride) for d, i in enumerate(free_a)),
        tuple(result.free(first_n + d, b[j].extent, rhs=b[j].stride) for d, j in enumerate(free_b)),
        tuple(result.summed(a[i].extent, a[i].stride, b[j].stride) for i, j in zip(axes_a, axes_b, strict=True)),
    )
