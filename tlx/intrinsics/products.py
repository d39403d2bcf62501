"""Matrix products, with and without an accumulator."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from tlx.intrinsics.core import (
    Intrinsic,
    Operand,
    OperandKind,
    RuleError,
    check_extends,
    extents_text,
    logical_paddings,
    row_major_results,
)
from tlx.intrinsics.tensor_type import TensorType
from tlx.ir.types import IntType, Type

if TYPE_CHECKING:
    from typing import Any

    import numpy as np

    from tlx.intrinsics.core import Dims, Infer, Meaning
    from tlx.intrinsics.numpy_types import Array


def _check_product(lhs: TensorType, rhs: TensorType) -> None:
    """The inner extents of a (batched) matrix product."""
    if lhs.extents[-1] != rhs.extents[-2]:
        message = (
            f"lhs is {extents_text(lhs.extents)} and rhs is {extents_text(rhs.extents)}: "
            f"inner extents {lhs.extents[-1]} and {rhs.extents[-2]} differ"
        )
        raise RuleError(message)


def _matmul_type(tensors: Sequence[TensorType], _dims: Dims, element: Type) -> list[TensorType]:
    """`BxMxK BxKxN -> BxMxN`."""
    lhs, rhs = tensors
    if lhs.rank != rhs.rank or lhs.rank < 2:
        message = f"lhs has rank {lhs.rank} and rhs has rank {rhs.rank}: both must have the same rank of at least 2"
        raise RuleError(message)
    batch, other = lhs.extents[:-2], rhs.extents[:-2]
    if batch != other:
        message = f"batch extents differ: {extents_text(batch)} of lhs and {extents_text(other)} of rhs"
        raise RuleError(message)
    _check_product(lhs, rhs)
    check_extends("lhs", lhs.element, element, "the result")
    check_extends("rhs", rhs.element, element, "the result")
    left, right = logical_paddings(lhs), logical_paddings(rhs)
    kept = [a or b for a, b in zip(left[:-2], right[:-2], strict=True)]
    return row_major_results(element, (*lhs.extents[:-1], rhs.extents[-1]), [*kept, left[-2], right[-1]])


def _matmul(arrays: Sequence[Array], _dims: Dims, _scalars: Sequence[Array], dtype: np.dtype[Any]) -> Array:
    """`L(lhs) @ L(rhs)` over the last two logical dimensions, for each index of the outer ones.

    Integers are signed and wrap. Operands narrower than the result are extended to it first.
    """
    from tlx.intrinsics.numpy_types import extend, narrow, working_type

    lhs, rhs = (extend(array, working_type(dtype)) for array in arrays)
    return narrow(matrix_product(lhs, rhs), dtype)


def matrix_product(lhs: Array, rhs: Array) -> Array:
    """`lhs @ rhs`, batch by batch, in the type of both: integers wrap."""
    import numpy as np

    with np.errstate(all="ignore"):
        return np.matmul(lhs, rhs)


def _mma_type(floats: bool) -> Infer:
    """The rule of a matrix product with an accumulator: `MxN MxK KxN -> MxN`."""

    def infer(tensors: Sequence[TensorType], _dims: Dims, element: Type) -> list[TensorType]:
        acc, lhs, rhs = tensors
        for name, tensor in zip(("acc", "lhs", "rhs"), tensors, strict=True):
            if tensor.rank != 2:
                message = f"{name} has rank {tensor.rank}: it must be a matrix"
                raise RuleError(message, name)
        _check_product(lhs, rhs)
        product = (lhs.extents[0], rhs.extents[1])
        if acc.extents != product:
            message = f"acc is {extents_text(acc.extents)} and lhs times rhs is {extents_text(product)}"
            raise RuleError(message, "acc")
        if acc.element != element:
            message = f"acc has elements of type {acc.element} and the result of type {element}: they must agree"
            raise RuleError(message, "acc")
        if not floats and not isinstance(element, IntType):
            message = f"acc has elements of type {element}: floating-point products are smma's"
            raise RuleError(message, "acc")
        check_extends("lhs", lhs.element, element, "acc")
        check_extends("rhs", rhs.element, element, "acc")
        pads = [
            logical_paddings(acc)[0] or logical_paddings(lhs)[0],
            logical_paddings(acc)[1] or logical_paddings(rhs)[1],
        ]
        return row_major_results(element, product, pads)

    return infer


def _mma(lhs_signed: bool, rhs_signed: bool) -> Meaning:
    """What a matrix product with an accumulator computes."""

    def meaning(arrays: Sequence[Array], _dims: Dims, _scalars: Sequence[Array], dtype: np.dtype[Any]) -> Array:
        from tlx.intrinsics.numpy_types import extend, narrow, working_type

        work = working_type(dtype)
        acc, lhs, rhs = arrays
        product = matrix_product(extend(lhs, work, signed=lhs_signed), extend(rhs, work, signed=rhs_signed))
        return narrow(extend(acc, work) + product, dtype)

    meaning.__doc__ = f"""`L(acc) + L(lhs) @ L(rhs)` on matrices.

    Integers of `lhs` are {_SIGN[lhs_signed]}, those of `rhs` {_SIGN[rhs_signed]}. Both are extended to the
    accumulator's type first; arithmetic wraps.{" Floats are taken as well." if lhs_signed and rhs_signed else ""}
    """
    return meaning


_SIGN: Final = {True: "signed", False: "unsigned"}


_ACC: Final = Operand("acc", OperandKind.TENSOR, "M x N matrix that the product is added to")
_LHS: Final = Operand("lhs", OperandKind.TENSOR, "M x K matrix")
_RHS: Final = Operand("rhs", OperandKind.TENSOR, "K x N matrix")


def _mma_row(name: str, lhs_signed: bool, rhs_signed: bool, aliases: tuple[str, ...] = ()) -> Intrinsic:
    floats = lhs_signed and rhs_signed
    return Intrinsic(
        name,
        (_ACC, _LHS, _RHS),
        "vector",
        f"Adds the product of two matrices, {_SIGN[lhs_signed]} times {_SIGN[rhs_signed]}, to a third.",
        _mma_type(floats),
        _mma(lhs_signed, rhs_signed),
        _MMA_EXAMPLE.replace("NAME", name),
        narrow=(1, 2),
        aliases=aliases,
    )


_MMA_EXAMPLE: Final = """\
%acc = call token @llvm.tensor.typeinfo(<9 x i32> %v, <2 x i32> <i32 3, i32 3>,
                                        <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
%lhs = call token @llvm.tensor.load(ptr elementtype(i8) %p, <2 x i32> <i32 3, i32 4>, <2 x i32> <i32 0, i32 1>,
                                    <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
%rhs = call token @llvm.tensor.load(ptr elementtype(i8) %q, <2 x i32> <i32 4, i32 3>, <2 x i32> <i32 0, i32 1>,
                                    <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
%sum = call <9 x i32> @llvm.tensor.NAME(token %acc, token %lhs, token %rhs)"""

PRODUCTS: Final = (
    Intrinsic(
        "matmul",
        (
            Operand("lhs", OperandKind.TENSOR, "M x K matrix, or a batch of them"),
            Operand("rhs", OperandKind.TENSOR, "K x N matrix, or a batch of them"),
        ),
        "vector",
        "Multiplies matrices, batch by batch.",
        _matmul_type,
        _matmul,
        """\
%a = call token @llvm.tensor.typeinfo(<12 x float> %v, <2 x i32> <i32 3, i32 4>,
                                      <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
%b = call token @llvm.tensor.typeinfo(<12 x float> %v, <2 x i32> <i32 4, i32 3>,
                                      <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
%c = call <9 x float> @llvm.tensor.matmul(token %a, token %b)""",
        narrow=(0, 1),
    ),
    _mma_row("umma", lhs_signed=False, rhs_signed=False),
    _mma_row("smma", lhs_signed=True, rhs_signed=True, aliases=("mma",)),
    _mma_row("usmma", lhs_signed=False, rhs_signed=True),
    _mma_row("summa", lhs_signed=True, rhs_signed=False),
)
