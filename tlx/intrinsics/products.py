"""Matrix products, with and without an accumulator, and contractions of two tensors along any dimensions."""

from __future__ import annotations

import math
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
from tlx.intrinsics.tensor_type import TensorType, vector_text
from tlx.ir.types import IntType, Type

if TYPE_CHECKING:
    from typing import Any

    import numpy as np

    from tlx.intrinsics.core import Dims, Infer, Meaning
    from tlx.intrinsics.numpy_types import Array


def _check_product(lhs: TensorType, rhs: TensorType) -> None:
    """Check the inner extents of a (batched) matrix product."""
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
    batch, rhs_batch = lhs.extents[:-2], rhs.extents[:-2]
    if batch != rhs_batch:
        message = f"batch extents differ: {extents_text(batch)} of lhs and {extents_text(rhs_batch)} of rhs"
        raise RuleError(message)
    _check_product(lhs, rhs)
    check_extends("lhs", lhs.element, element, "the result")
    check_extends("rhs", rhs.element, element, "the result")
    left, right = logical_paddings(lhs), logical_paddings(rhs)
    batch_paddings = [a or b for a, b in zip(left[:-2], right[:-2], strict=True)]
    return row_major_results(element, (*lhs.extents[:-1], rhs.extents[-1]), [*batch_paddings, left[-2], right[-1]])


def _matmul(arrays: Sequence[Array], _dims: Dims, _scalars: Sequence[Array], dtype: np.dtype[Any]) -> Array:
    """`L(lhs) @ L(rhs)` over the last two logical dimensions, for each index of the outer ones.

    Integers are signed and wrap. Operands narrower than the result are extended to it first.
    """
    from tlx.intrinsics.numpy_types import extend, narrow, working_type

    lhs, rhs = (extend(array, working_type(dtype)) for array in arrays)
    return narrow(matrix_product(lhs, rhs), dtype)


def matrix_product(lhs: Array, rhs: Array) -> Array:
    """`lhs @ rhs` for each batch index, in the type of both operands: integers wrap."""
    import numpy as np

    with np.errstate(all="ignore"):
        return np.matmul(lhs, rhs)


def _mma_type(floats: bool) -> Infer:
    """The typing rule of a matrix product with an accumulator: `MxN MxK KxN -> MxN`."""

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
            message = f"acc has elements of type {element}: use smma for floating-point products"
            raise RuleError(message, "acc")
        check_extends("lhs", lhs.element, element, "acc")
        check_extends("rhs", rhs.element, element, "acc")
        paddings = [
            logical_paddings(acc)[0] or logical_paddings(lhs)[0],
            logical_paddings(acc)[1] or logical_paddings(rhs)[1],
        ]
        return row_major_results(element, product, paddings)

    return infer


def _mma(lhs_signed: bool, rhs_signed: bool) -> Meaning:
    """The meaning of a matrix product with an accumulator."""

    def meaning(arrays: Sequence[Array], _dims: Dims, _scalars: Sequence[Array], dtype: np.dtype[Any]) -> Array:
        from tlx.intrinsics.numpy_types import extend, narrow, working_type

        work = working_type(dtype)
        acc, lhs, rhs = arrays
        product = matrix_product(extend(lhs, work, signed=lhs_signed), extend(rhs, work, signed=rhs_signed))
        return narrow(extend(acc, work) + product, dtype)

    meaning.__doc__ = f"""`L(acc) + L(lhs) @ L(rhs)` on matrices.

    Integers of `lhs` are {_SIGN[lhs_signed]}, those of `rhs` {_SIGN[rhs_signed]}. Both are extended to the
    accumulator's type first; arithmetic wraps.{" Floats are accepted as well." if lhs_signed and rhs_signed else ""}
    """
    return meaning


_SIGN: Final = {True: "signed", False: "unsigned"}


_ACC: Final = Operand("acc", OperandKind.TENSOR, "M x N matrix to which the product is added")
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
        is_product=True,
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
        "Multiplies matrices, or batches of matrices.",
        _matmul_type,
        _matmul,
        """\
%a = call token @llvm.tensor.typeinfo(<12 x float> %v, <2 x i32> <i32 3, i32 4>,
                                      <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
%b = call token @llvm.tensor.typeinfo(<12 x float> %v, <2 x i32> <i32 4, i32 3>,
                                      <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
%c = call <9 x float> @llvm.tensor.matmul(token %a, token %b)""",
        narrow=(0, 1),
        is_product=True,
    ),
    _mma_row("umma", lhs_signed=False, rhs_signed=False),
    _mma_row("smma", lhs_signed=True, rhs_signed=True, aliases=("mma",)),
    _mma_row("usmma", lhs_signed=False, rhs_signed=True),
    _mma_row("summa", lhs_signed=True, rhs_signed=False),
)


EMPTY: Final = (-1,)
"""An empty list of dimensions."""


def free_axes(rank: int, *paired: Sequence[int]) -> list[int]:
    """The free dimensions, which are neither contracted nor batch dimensions, in order."""
    paired_axes = {axis for axes in paired for axis in axes}
    return [d for d in range(rank) if d not in paired_axes]


def axes_of(dims: Dims) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """Contracted dimensions of `a` and of `b`, and batch dimensions of both.

    Omitted lists are empty, and so is <-1>: LLVM has no vectors without elements.
    """
    axes_a, axes_b, batch_a, batch_b = (
        () if axes == EMPTY else tuple(axes) for axes in (*dims, *[()] * (4 - len(dims)))
    )
    return axes_a, axes_b, batch_a, batch_b


def _contract_type(tensors: Sequence[TensorType], dims: Dims, element: Type) -> list[TensorType]:
    """`a[batch, free a, contracted] b[batch, free b, contracted] -> [batch, free a, free b]`."""
    a, b = tensors
    axes_a, axes_b, batch_a, batch_b = axes_of(dims)
    _check_axes("a", a, {"axes_a": axes_a, "batch_a": batch_a})
    _check_axes("b", b, {"axes_b": axes_b, "batch_b": batch_b})
    _check_pairs(a, b, ("axes_a", axes_a), ("axes_b", axes_b))
    _check_pairs(a, b, ("batch_a", batch_a), ("batch_b", batch_b))
    check_extends("a", a.element, element, "the result")
    check_extends("b", b.element, element, "the result")
    free_a, free_b = free_axes(a.rank, axes_a, batch_a), free_axes(b.rank, axes_b, batch_b)
    left, right = logical_paddings(a), logical_paddings(b)
    batch = [left[i] or right[j] for i, j in zip(batch_a, batch_b, strict=True)]
    extents = [*(a.extents[d] for d in (*batch_a, *free_a)), *(b.extents[d] for d in free_b)]
    paddings = [*batch, *(left[d] for d in free_a), *(right[d] for d in free_b)]
    return row_major_results(element, extents or [1], paddings or [0])


def _check_axes(operand: str, tensor: TensorType, lists: dict[str, tuple[int, ...]]) -> None:
    """Check that axes are distinct dimensions of their operand."""
    seen: dict[int, str] = {}
    for name, axes in lists.items():
        for axis in axes:
            if not 0 <= axis < tensor.rank:
                message = f"{name} {vector_text(axes)} must be dimensions of {operand}, 0 to {tensor.rank - 1}"
                raise RuleError(message, name)
            if axis in seen:
                where = "twice" if seen[axis] == name else f"and {seen[axis]} does too"
                raise RuleError(f"{name} {vector_text(axes)} names dimension {axis} of {operand} {where}", name)
            seen[axis] = name


def _check_pairs(
    a: TensorType, b: TensorType, of_a: tuple[str, tuple[int, ...]], of_b: tuple[str, tuple[int, ...]]
) -> None:
    """Check that axes pair dimensions of equal extents."""
    (name_a, axes_a), (name_b, axes_b) = of_a, of_b
    if len(axes_a) != len(axes_b):
        message = (
            f"{name_a} {_list_text(axes_a)} and {name_b} {_list_text(axes_b)} must have the same number of entries"
        )
        raise RuleError(message, name_b)
    for i, j in zip(axes_a, axes_b, strict=True):
        if a.extents[i] != b.extents[j]:
            message = (
                f"{name_a} and {name_b} pair dimension {i} of a, extent {a.extents[i]}, "
                f"with dimension {j} of b, extent {b.extents[j]}: extents must agree"
            )
            raise RuleError(message, name_b)


def _list_text(axes: Sequence[int]) -> str:
    return vector_text(axes) if axes else "(empty)"


def _contract(arrays: Sequence[Array], dims: Dims, _scalars: Sequence[Array], dtype: np.dtype[Any]) -> Array:
    """Products of elements, summed over all pairs of contracted dimensions (`numpy.tensordot`).

    The result's dimensions are the batch dimensions in the order of `batch_a`, then the free dimensions of `a`, then
    those of `b`, both in order; without any of them the result has one element. Without lists, `contract(a, b)` is the
    outer product. LLVM has no vectors without elements: `<1 x i32> <i32 -1>` is an empty list, as a batch of outer
    products needs it for its axes.

    Integers are signed and wrap. Operands narrower than the result are extended to it first.
    """
    import numpy as np

    from tlx.intrinsics.numpy_types import extend, narrow, working_type

    a, b = (extend(array, working_type(dtype)) for array in arrays)
    axes_a, axes_b, batch_a, batch_b = axes_of(dims)
    free_a, free_b = free_axes(a.ndim, axes_a, batch_a), free_axes(b.ndim, axes_b, batch_b)
    batch = [a.shape[d] for d in batch_a]
    rows, columns = [a.shape[d] for d in free_a], [b.shape[d] for d in free_b]
    inner = math.prod(a.shape[d] for d in axes_a)
    lhs = np.transpose(a, (*batch_a, *free_a, *axes_a)).reshape(*batch, math.prod(rows), inner)
    rhs = np.transpose(b, (*batch_b, *axes_b, *free_b)).reshape(*batch, inner, math.prod(columns))
    return narrow(matrix_product(lhs, rhs), dtype).reshape([*batch, *rows, *columns] or [1])


_A: Final = Operand("a", OperandKind.TENSOR, "the first tensor")
_B: Final = Operand("b", OperandKind.TENSOR, "the second tensor")
_NONE: Final = "write <1 x i32> <i32 -1> for an empty list, or omit all lists"
_AXES_A: Final = Operand(
    "axes_a", OperandKind.DIMS, "logical dimensions of `a` to contract; <-1> for none", empty=_NONE
)
_AXES_B: Final = Operand(
    "axes_b", OperandKind.DIMS, "the dimension of `b` that each of them is paired with", like_previous=True, empty=_NONE
)
_BATCH_A: Final = Operand(
    "batch_a", OperandKind.DIMS, "logical dimensions of `a` that are batch dimensions", empty=_NONE
)
_BATCH_B: Final = Operand(
    "batch_b",
    OperandKind.DIMS,
    "the dimension of `b` that each of them is paired with",
    like_previous=True,
    empty=_NONE,
)

CONTRACTIONS: Final = (
    Intrinsic(
        "contract",
        (_A, _B, _AXES_A, _AXES_B),
        "vector",
        "Multiplies tensors and sums over pairs of dimensions.",
        _contract_type,
        _contract,
        """\
%a = call token @llvm.tensor.typeinfo(<8 x float> %v, <3 x i32> <i32 2, i32 2, i32 2>,
                                      <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> zeroinitializer)
; the free dimensions are 1 of the first %a and 2 of the second: four elements
%c = call <4 x float> @llvm.tensor.contract(token %a, token %a, <2 x i32> <i32 0, i32 2>, <2 x i32> <i32 0, i32 1>)
; for each index of dimension 0: 2 x 2 times 2 x 2
%d = call <8 x float> @llvm.tensor.contract(token %a, token %a, <1 x i32> <i32 2>, <1 x i32> <i32 1>,
                                            <1 x i32> zeroinitializer, <1 x i32> zeroinitializer)
; every element of %a times every element of %a
%e = call <64 x float> @llvm.tensor.contract(token %a, token %a)
; for each index of dimension 0: the outer product of 2 x 2 elements
%f = call <32 x float> @llvm.tensor.contract(token %a, token %a, <1 x i32> <i32 -1>, <1 x i32> <i32 -1>,
                                             <1 x i32> zeroinitializer, <1 x i32> zeroinitializer)""",
        variants=((_A, _B, _AXES_A, _AXES_B, _BATCH_A, _BATCH_B), (_A, _B)),
        narrow=(0, 1),
        is_product=True,
    ),
)
