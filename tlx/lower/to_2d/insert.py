"""`insertelement` into a large vector: the vector copied, and the element stored over its own.

Rewrite::

    %w = insertelement <6400 x float> %v, float %x, i64 %i
    ->
    call void @llvm.memcpy(ptr %w.buf, ptr %v.buf, ...)
    %in = icmp ult i64 %i, 6400                         ; what is inserted elsewhere makes any vector right
    %at = select i1 %in, i64 %i, i64 0
    store float %x, ptr (%w.buf + %at)
"""

from __future__ import annotations

from tlx.ir.tensor_builder import TensorBuilder
from tlx.ir.tensors import TensorOp
from tlx.ir.types import I64, IntType, bits_of, bytes_of
from tlx.ir.values import ConstInt, Value
from tlx.lower.to_2d.copies import as_stored, copy
from tlx.lower.to_2d.plan import Plan
from tlx.lower.to_2d.views import View


def lower_insert(plan: Plan, b: TensorBuilder, op: TensorOp, target: View) -> None:
    """Write the operand to `target`, then the element at its position."""
    copy(b, plan.view(op.tensors[0]), target)
    element, index = op.scalars
    address = b.gep(target.element, target.place.pointer, position(b, index, target.sizes[0]), "position")
    b.store(as_stored(b, element), address, bytes_of(target.element))


def position(b: TensorBuilder, index: Value, count: int) -> Value:
    """The number of a vector's element, which is unsigned; 0 instead of one that the vector does not have."""
    if isinstance(index, ConstInt):
        return ConstInt(I64, index.unsigned if index.unsigned < count else 0)
    assert isinstance(index.type, IntType)
    wide = b.cast("zext" if bits_of(index.type) < bits_of(I64) else "trunc", index, I64)
    return b.select(b.icmp("ult", wide, count), wide, ConstInt(I64, 0), "position")
