"""Products: `llvm.tensor.matmul`, `umma smma usmma summa`, `contract`.

`llvm.tensor.matmul`: loops over the batch around a 2-D product.

Rewrite of a batched product, 10 x (M x K) times 10 x (K x N)::

    %c = call <10*M*N x float> @llvm.tensor.matmul(token %a, token %b)
    ->
    i.loop:                                                                   ; i from 0 to 10
      %pa = getelementptr inbounds float, ptr %a.ptr, i64 (%i * M*K)
      %pb = getelementptr inbounds float, ptr %b.ptr, i64 (%i * K*N)
      %pc = getelementptr inbounds float, ptr %c.buf, i64 (%i * M*N)
      %lhs = call token @llvm.tensor.load(ptr elementtype(float) %pa, <M, K>, <0, 1>, <0, 0>, <0, K>)
      %rhs = call token @llvm.tensor.load(ptr elementtype(float) %pb, <K, N>, <0, 1>, <0, 0>, <0, N>)
      %matmul = call <M*N x float> @llvm.tensor.matmul(token %lhs, token %rhs)
      %product = call token @llvm.tensor.typeinfo(<M*N x float> %matmul, <M, N>, <0, 1>, <0, 0>)
      call void @llvm.tensor.store(ptr %pc, token %product, <0, N>)

A column-major operand is loaded with layout <1, 0>; padding is not part of the loads' shapes. An operand is copied
first if neither of its last two dimensions is dense in memory (batch innermost).

`llvm.tensor.umma smma usmma summa`: a 2-D product added to an accumulator in memory.

Rewrite where the result is stored over its accumulator::

    %c = call token @llvm.tensor.load(ptr elementtype(i32) %p, <M, N>, <0, 1>, <0, 0>, <0, ldc>)
    %s = call <M*N x i32> @llvm.tensor.smma(token %c, token %a, token %b)
    %t = call token @llvm.tensor.typeinfo(<M*N x i32> %s, <M, N>, <0, 1>, <0, 0>)
    call void @llvm.tensor.store(ptr %p, token %t, <0, ldc>)
    ->
    %acc = call token @llvm.tensor.load(ptr elementtype(i32) %p, <M, N>, <0, 1>, <0, 0>, <0, ldc>)
    %lhs = call token @llvm.tensor.load(...)
    %rhs = call token @llvm.tensor.load(...)
    %smma = call <M*N x i32> @llvm.tensor.smma(token %acc, token %lhs, token %rhs)
    %sum = call token @llvm.tensor.typeinfo(<M*N x i32> %smma, <M, N>, <0, 1>, <0, 0>)
    call void @llvm.tensor.store(ptr %p, token %sum, <0, ldc>)

An accumulator that is not row-major is first copied to the destination. An accumulator of zeros needs no memory if
`matmul` computes the same.

`llvm.tensor.contract`: products summed over pairs of dimensions.

Rewrite of a 64 x 5 x 64 tensor, whose rows lie 80 apart, times a 5 x 64 x 64 one, over the dimensions of 5 and of 64::

    %c = call <4096 x half> @llvm.tensor.contract(token %a, token %b, <i32 1, i32 2>, <i32 0, i32 1>)
    ->
    sums = product of 64 x 64 matrices of %a, rows 400 apart, and %b           as float
    k.loop:                                                                    ; 4 more of them
      sums += product of such matrices, those of %a 80 further each time, those of %b 4096
    %c.buf = sums                                                              rounded to half

Which dimensions are multiplied as matrices and which become loops is decided by `contraction.strategy`.

`llvm.tensor.convolution`: a contraction on overlapping views of the input, without copies of windows.

Rewrite of 1 x 64 x 56 x 56 with 64 x 64 x 3 x 3, the result 54 x 54::

    %y = call <186624 x float> @llvm.tensor.convolution(token %x, token %w)
    ->
    %lhs.buf = w as 3 x 3 x 64 x 64                          ; position, filter, channel: channels next to each other
    batch.loop:                                              ; 54 rows of the result
      y[:, row, :] = lhs.buf[0] @ x[:, row, 0:54]            ; 64 x 64 times 64 x 54
      k.loop:                                                ; the other 8 positions in the kernel
        y[:, row, :] += lhs.buf[i, j] @ x[:, row + i, j:j+54]

Positions in the kernel are summed dimensions with the same strides in the input as positions of the result. The input
is copied first where that is faster (`convolution.problem`). A dilated input becomes several convolutions of the input
itself (`convolution.transposed`); where these are many or small, zeros are written between its elements.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, Protocol

from tlx.intrinsics.convolution import Windows
from tlx.intrinsics.tensor_type import TensorType
from tlx.ir.tensors.builder import TensorBuilder
from tlx.ir.tensors.model import TensorOp
from tlx.ir.types import FloatType
from tlx.lower.memory.views import TensorView, as_matrices
from tlx.lower.to_2d.analysis.tensor_operations import MMA
from tlx.lower.to_2d.contraction.emit import emit_contraction
from tlx.lower.to_2d.contraction.problem import (
    Contraction,
    ContractionEpilogue,
    ContractionResult,
    OperandMemory,
    contraction_of,
)
from tlx.lower.to_2d.convolution.borders import padded_source
from tlx.lower.to_2d.convolution.dense import emit_convolution
from tlx.lower.to_2d.convolution.dilated import DilatedInput
from tlx.lower.to_2d.convolution.problem import DenseConvolution
from tlx.lower.to_2d.convolution.transposed import TransposedConvolution, choose_phases, emit_phases
from tlx.lower.to_2d.emission import EmitContext, RuleContext
from tlx.lower.to_2d.memory.copies import copy


@dataclass(frozen=True)
class BatchedProduct:
    """A product to emit.

    Attributes:
        kind: `matmul`, or umma, smma, usmma, summa.
        lhs: `B... x M x K`.
        rhs: `B... x K x N`.
        destination: `B... x M x N`; it does not overlap the operands.
        acc: `B... x M x N`: None for matmul, and for an accumulator of zeros. It is the destination or disjoint.
    """

    kind: str
    lhs: TensorView
    rhs: TensorView
    destination: TensorView
    acc: TensorView | None = None


def emit_product(
    context: EmitContext,
    b: TensorBuilder,
    op: TensorOp,
    product: BatchedProduct,
    epilogue: ContractionEpilogue | None = None,
) -> None:
    """Write a product as loops over its batch around a 2-D tree.

    Args:
        context: Target, temporaries and remarks.
        b: The builder.
        op: The operation that is lowered.
        product: The operands and the result.
        epilogue: The epilogue of the product.
    """
    product = _with_accumulator(context, b, product, epilogue)
    emit_contraction(context, b, op, _product_contraction(product, epilogue), epilogue)


def _product_contraction(product: BatchedProduct, epilogue: ContractionEpilogue | None) -> Contraction:
    result = ContractionResult(product.destination, product.acc, epilogue)
    lhs, rhs = product.lhs.dims, product.rhs.dims
    last = len(lhs) - 1
    batch = tuple(result.free(d, lhs[d].extent, lhs=lhs[d].stride, rhs=rhs[d].stride) for d in range(last - 1))
    return Contraction(
        product.kind,
        OperandMemory.of(product.lhs),
        OperandMemory.of(product.rhs),
        OperandMemory.of(product.destination),
        batch,
        (result.free(last - 1, lhs[-2].extent, lhs=lhs[-2].stride),),
        (result.free(last, rhs[-1].extent, rhs=rhs[-1].stride),),
        (result.summed(lhs[-1].extent, lhs[-1].stride, rhs[-2].stride),),
        None if product.acc is None else OperandMemory.of(product.acc),
    )


# Accumulators --------------------------------------------------------------------------------------------------------


def _with_accumulator(
    context: EmitContext, b: TensorBuilder, product: BatchedProduct, epilogue: ContractionEpilogue | None
) -> BatchedProduct:
    """The product with an accumulator that 2-D loads can read row by row, copied if necessary, or with none."""
    if product.kind not in MMA or (product.acc is not None and _is_usable(product, product.acc)):
        return product
    if product.acc is None:
        return replace(product, kind="matmul") if _is_matmul(product) else product
    acc = _new_accumulator(context, product, epilogue)
    copy(b, product.acc, acc)
    return replace(product, acc=acc)


def _is_usable(product: BatchedProduct, acc: TensorView) -> bool:
    matrices = as_matrices(acc)
    return acc.aliases_exactly(product.destination) or (matrices is not None and matrices.type.is_row_major)


def _is_matmul(product: BatchedProduct) -> bool:
    """Whether a product added to zeros equals `matmul`: signedness does not matter if no element is extended."""
    elements = {view.element for view in (product.lhs, product.rhs, product.destination)}
    return product.kind == "smma" or len(elements) == 1 or isinstance(product.destination.element, FloatType)


def _new_accumulator(context: EmitContext, product: BatchedProduct, epilogue: ContractionEpilogue | None) -> TensorView:
    """Memory for the accumulator: the destination, unless the epilogue reads it or changes its element type."""
    destination = product.destination
    if epilogue is None or (epilogue.may_use_destination and epilogue.element == destination.element):
        return destination
    type_ = TensorType.dense(epilogue.element, [dim.extent for dim in destination.dims])
    return TensorView.of(context.allocate(type_.element, type_.count, "acc"), type_)


def lower_matmul(
    context: RuleContext,
    b: TensorBuilder,
    op: TensorOp,
    destination: TensorView,
    epilogue: ContractionEpilogue | None = None,
) -> None:
    """Write `destination = L(lhs) @ L(rhs)`."""
    lhs, rhs = (context.memory.view(tensor) for tensor in op.tensors)
    emit_product(context, b, op, BatchedProduct("matmul", lhs, rhs, destination), epilogue)


def lower_mma(
    context: RuleContext,
    b: TensorBuilder,
    op: TensorOp,
    destination: TensorView,
    epilogue: ContractionEpilogue | None = None,
) -> None:
    """Write `destination = L(acc) + L(lhs) @ L(rhs)`."""
    acc, lhs, rhs = context.memory.operands(op)
    assert lhs is not None
    assert rhs is not None
    emit_product(context, b, op, BatchedProduct(op.intrinsic.name, lhs, rhs, destination, acc), epilogue)


def lower_contract(
    context: RuleContext,
    b: TensorBuilder,
    op: TensorOp,
    destination: TensorView,
    epilogue: ContractionEpilogue | None = None,
) -> None:
    """Write the contraction of two tensors to `destination`."""
    lhs, rhs = (context.memory.view(tensor) for tensor in op.tensors)
    emit_contraction(
        context, b, op, contraction_of(lhs, rhs, op.dims, ContractionResult(destination, None, epilogue)), epilogue
    )


def lower_accumulated(
    context: RuleContext, b: TensorBuilder, op: TensorOp, destination: TensorView, acc: TensorView
) -> None:
    """Write `acc` plus `op`, a `matmul` or `contract` of floats, to `destination`; the sums start from `acc`."""
    lhs, rhs = (context.memory.view(tensor) for tensor in op.tensors)
    if op.intrinsic.name == "matmul":
        emit_product(context, b, op, BatchedProduct("smma", lhs, rhs, destination, acc))
    else:
        emit_contraction(context, b, op, contraction_of(lhs, rhs, op.dims, ContractionResult(destination, acc)))


class ProductRule(Protocol):
    """A rule that takes the epilogue of a product."""

    def __call__(
        self,
        context: RuleContext,
        b: TensorBuilder,
        op: TensorOp,
        destination: TensorView,
        epilogue: ContractionEpilogue | None = None,
    ) -> None:
        """Write the result of an operation to `destination`."""
        ...


def lower_convolution(
    context: RuleContext,
    b: TensorBuilder,
    op: TensorOp,
    destination: TensorView,
    epilogue: ContractionEpilogue | None = None,
) -> None:
    """Write the cross-correlation of two tensors to `destination`."""
    padding = padded_source(context.memory, op.tensors[0])
    x, w = (context.memory.view(tensor) for tensor in op.tensors)
    windows = Windows.of(len(x.dims), op.dims)
    result = ContractionResult(destination, None, epilogue)
    if padding is not None and padding.is_spread:
        dilated = TransposedConvolution.of_padded(padding, w, windows, result)
        choice = choose_phases(context.target, dilated)
        assert choice is not None
        emit_phases(context, b, op, dilated, choice)
        return
    if any(dim.extent > 1 < step for dim, step in zip(x.dims[::-1], windows.input_steps[::-1], strict=False)):
        with_holes = DilatedInput.by_windows(x, windows)
        choice = with_holes.faster_phases(context.target, TransposedConvolution.of(x, w, windows, result))
        if choice is not None:
            emit_phases(context, b, op, TransposedConvolution.of(x, w, windows, result), choice)
            return
        x = with_holes.emit(context, b, op)
    problem = DenseConvolution(x if padding is None else padding.view, w, windows, result, padding=padding)
    emit_convolution(context, b, op, problem)


PRODUCT_RULES: Final[dict[str, ProductRule]] = {
    "matmul": lower_matmul,
    **dict.fromkeys(MMA, lower_mma),
    "contract": lower_contract,
    "convolution": lower_convolution,
}
"""The rules that take an epilogue."""
