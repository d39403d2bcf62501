"""`llvm.tensor.reduce.*`: windows are reduced by 2-D trees, one dimension after the other where they are large.

Rewrite of the sum of each row::

    %s = call <R x float> @llvm.tensor.reduce.add(token %x, <2 x i32> <i32 1, i32 C>, <2 x i32> <i32 1, i32 1>)
    ->
    %rows = call token @llvm.tensor.load(ptr %x.ptr, <R, C>, <0, 1>, <0, 0>, <0, C>)
    %v = call <R*C x float> @llvm.tensor.tovector(token %rows)
    %matrix = call token @llvm.tensor.typeinfo(<R*C x float> %v, <R, C>, <0, 1>, <0, 0>)
    %add = call <R x float> @llvm.tensor.reduce.add(token %matrix, <1, C>, <1, 1>)
    %block = call token @llvm.tensor.typeinfo(<R x float> %add, <R, 1>, <0, 1>, <0, 0>)
    call void @llvm.tensor.store(ptr %s.buf, token %block, <0, 1>)

of 2 x 2 windows that overlap::

    %s = call <R*C x float> @llvm.tensor.reduce.add(token %x, <2 x i32> <i32 2, i32 2>, <2 x i32> <i32 1, i32 1>)
    ->
    store(%s.buf, typeinfo(fadd(fadd(fadd(load %x.ptr, load %x.ptr + 1), load %x.ptr + C), load %x.ptr + C + 1)))

and of 2 x 2 windows side by side, for which even and odd columns are first taken apart::

    store(%buf, transpose(load %x.ptr, <C/2, 2>))                         ; for each row
    store(%s.buf, typeinfo(fadd(fadd(fadd(load %buf, load %buf + C/2), ...
"""

from __future__ import annotations

from tlx.ir.builder.tensors import TensorBuilder
from tlx.ir.tensors.model import TensorOp
from tlx.lower.memory.views import TensorView
from tlx.lower.to_2d.reduction import TypedPointer, WindowAxis, reduce_axes
from tlx.lower.to_2d.rules.context import RuleContext


def lower_reduce(context: RuleContext, b: TensorBuilder, op: TensorOp, target: TensorView) -> None:
    """Write the reduction of each window of the operand to `target`."""
    source = context.view(op.tensors[0])
    sizes = zip(source.dims, target.dims, *op.dims, strict=True)
    axes = [WindowAxis(out.extent, dim.stride, out.stride, window, step) for dim, out, window, step in sizes]
    reduce_axes(context, b, op, axes, _data(source), _data(target))


def _data(view: TensorView) -> TypedPointer:
    return TypedPointer(view.storage.pointer, view.element)
