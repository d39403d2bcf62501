"""THE table: each `llvm.tensor.*` intrinsic once. Everything else is derived from it.

Verifier, builder methods, canonical names and declarations, the evaluator, the C header and the reference pages read
`INTRINSICS`; adding an intrinsic is adding one entry here (and one lowering rule).

A row's `infer` is its typing rule and its `meaning` is what it computes, on logical arrays: dimension `d` of an array
is logical dimension `d` of the tensor, wherever memory has it, and holds data only, no padding.
"""

from __future__ import annotations

import enum
import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from tlx.ir.types import FloatType, IntType, Type
from tlx.types import TensorType, vector_text

if TYPE_CHECKING:
    from typing import Any

    import numpy as np

    from tlx.numpy_types import Array

    Dims = Sequence[tuple[int, ...]]
    Infer = Callable[[Sequence[TensorType], Dims, Type], list[TensorType]]
    Meaning = Callable[[Sequence[Array], Dims, Sequence[Array], np.dtype[Any]], Array]

_PREFIXES: Final = ("llvm.tensor.", "llvm.vector.")
_MOST_SUBSETS: Final = 6


class Kind(enum.Enum):
    """What an operand is; the value is how messages name it."""

    TENSOR = "a token"
    FLAT = "a flattened vector or a pointer to one"
    POINTER = "a pointer"
    DIMS = "a constant vector of i32"
    INDEX = "a constant i32"
    SCALAR = "a number"


@dataclass(frozen=True)
class Operand:
    """One operand of an intrinsic.

    Attributes:
        name: What messages and the reference call it.
        kind: What it must be.
        doc: One line for the reference.
        like_previous: Whether its type is that of the DIMS operand before it, so that it is not mangled.
        repeated: Whether it may stand once or more often.
    """

    name: str
    kind: Kind
    doc: str
    like_previous: bool = False
    repeated: bool = False


@dataclass(frozen=True, eq=False)
class Intrinsic:
    """One row of the table.

    Attributes:
        name: `matmul` of `llvm.tensor.matmul`.
        operands: The canonical form's.
        result: What a call returns; a vector is the flattened result.
        doc: One line.
        infer: From the operands' tensor types, the values of the DIMS (and INDEX) operands and the result's element
            type to the results that are allowed, the preferred one first. Raises ValueError (RuleError where one
            operand is to blame) if the operands do not go together. Loads and typeinfo give the type they describe.
        meaning: From logical arrays, DIMS, SCALAR operands and the result's dtype to the result's logical array.
        example: Calls in the proposal's spelling, complete but for the function around them.
        effects: On memory; `typeinfo` is pure but may be neither speculated nor taken for one that always returns.
        variants: Other accepted forms.
        aliases: Other accepted names.
        narrow: Tensor operands (by their number among the tensors) whose elements may be narrower than the result's.
        prefix: What stands before the name.
    """

    name: str
    operands: tuple[Operand, ...]
    result: Literal["token", "vector", "void"]
    doc: str
    infer: Infer
    meaning: Meaning
    example: str
    effects: Literal["pure", "typeinfo", "read", "write"] = "pure"
    variants: tuple[tuple[Operand, ...], ...] = ()
    aliases: tuple[str, ...] = ()
    narrow: tuple[int, ...] = ()
    prefix: str = "llvm.tensor."

    @property
    def full_name(self) -> str:
        """The name with its prefix, not mangled."""
        return self.prefix + self.name

    @property
    def forms(self) -> tuple[tuple[Operand, ...], ...]:
        """All accepted operand lists, the canonical one first."""
        return (self.operands, *self.variants)

    def attributes(self, *, reads: bool = False) -> str:
        """Attributes of the declaration, in words that LLVM 14 to 22 all take.

        Args:
            reads: Whether the operand that may be a pointer is one.

        `typeinfo` is no `willreturn speculatable`: with these LLVM deletes a loop whose token is used behind it.
        """
        return _ATTRIBUTES["read" if reads else self.effects]


_ATTRIBUTES: Final = {
    "pure": "nounwind readnone speculatable willreturn",
    "typeinfo": "nounwind readnone",
    "read": "argmemonly nounwind readonly",
    "write": "argmemonly nounwind willreturn writeonly",
}


class RuleError(ValueError):
    """Operands break a rule of their intrinsic.

    Attributes:
        operand: Name of the operand to blame, None where no single one is.
    """

    def __init__(self, message: str, operand: str | None = None) -> None:
        super().__init__(message)
        self.operand = operand


def lookup(callee: str) -> Intrinsic | None:
    """The intrinsic that a function's name means, None if there is none.

    Any suffix is accepted, `llvm.tensor.load.p0i8.v2i32` as well as `llvm.tensor.load`; the longest name wins.
    """
    stem = callee.strip('"')
    while stem.startswith(_PREFIXES):
        if stem in _BY_NAME:
            return _BY_NAME[stem]
        stem = stem.rpartition(".")[0]
    return None


def is_tensor_name(callee: str) -> bool:
    """Whether a function's name is in our name space, known or not."""
    return callee.strip('"').startswith(("llvm.tensor.", "llvm.vector.totensor"))


# What rules are made of --------------------------------------------------------------------------------------------


def extents_text(extents: Iterable[int]) -> str:
    """`3x4`, as messages show extents."""
    return "x".join(map(str, extents))


def _paddings(tensor: TensorType) -> list[int]:
    """Padding of each logical dimension."""
    return [tensor.padding[tensor.position(d)] for d in range(tensor.rank)]


def _results(element: Type, extents: Sequence[int], paddings: Sequence[int]) -> list[TensorType]:
    """Row-major results: without padding, with all of `paddings`, then with that of some dimensions only."""
    padded = [d for d, padding in enumerate(paddings) if padding]
    sizes = [0] if not padded else [0, len(padded)]
    if len(padded) <= _MOST_SUBSETS:
        sizes.extend(range(1, len(padded)))
    layout = tuple(range(len(extents)))
    results: list[TensorType] = []
    for kept in itertools.chain.from_iterable(itertools.combinations(padded, size) for size in sizes):
        padding = tuple(p if d in kept else 0 for d, p in enumerate(paddings))
        shape = tuple(e + p for e, p in zip(extents, padding, strict=True))
        results.append(TensorType(element, shape, layout, padding))
    return results


def _same_kind(a: Type, b: Type) -> bool:
    return isinstance(a, IntType) == isinstance(b, IntType)


def _bits(type_: Type) -> int:
    return type_.bits if isinstance(type_, (IntType, FloatType)) else 0


def _check_extends(name: str, operand: Type, to: Type, what: str) -> None:
    """An operand's elements must be the result's or extend to them: i8 to i32, bfloat to float."""
    if not _same_kind(operand, to):
        message = f"{name} has elements of type {operand} and {what} of type {to}: both must be integers or both floats"
        raise RuleError(message, name)
    if operand != to and _bits(operand) >= _bits(to):
        message = f"{name} has elements of type {operand}, which do not extend to {what}'s type {to}"
        raise RuleError(message, name)


def _check_same_element(tensor: TensorType, element: Type) -> None:
    if tensor.element != element:
        message = f"the operand has elements of type {tensor.element} and the result of type {element}: they must agree"
        raise RuleError(message)


def _check_permutation(name: str, numbers: Sequence[int], rank: int) -> None:
    if sorted(numbers) != list(range(rank)):
        message = f"{name} {vector_text(numbers)} is no permutation of 0 to {rank - 1}"
        raise RuleError(message, name)


def _identity(arrays: Sequence[Array], _dims: Dims, _scalars: Sequence[Array], _dtype: np.dtype[Any]) -> Array:
    return arrays[0]


# Tokens, load, store -----------------------------------------------------------------------------------------------


def _described_type(_tensors: Sequence[TensorType], dims: Dims, element: Type) -> list[TensorType]:
    shape, layout, padding = dims[:3]
    return [TensorType(element, shape, layout, padding)]


def _nothing(_tensors: Sequence[TensorType], _dims: Dims, _element: Type) -> list[TensorType]:
    return []


def _typeinfo(arrays: Sequence[Array], dims: Dims, scalars: Sequence[Array], dtype: np.dtype[Any]) -> Array:
    """The tensor that lies in the flattened vector, outermost memory dimension first.

    Memory dimension `k` has `shape[k]` positions, holds logical dimension `layout[k]`, and its last `padding[k]`
    positions hold no data. Where the operand is a pointer, the flattened vector is read from memory there.
    """
    return _identity(arrays, dims, scalars, dtype)


def _load(arrays: Sequence[Array], dims: Dims, scalars: Sequence[Array], dtype: np.dtype[Any]) -> Array:
    """The tensor whose element `(x_0 ... x_{n-1})` is at element offset `((x_0*p_1 + x_1)*p_2 + ...) + x_{n-1}`.

    `p_k`, the pitch of memory dimension `k`, is `strides[k]`, or `shape[k]` where that is 0; `strides[0]` is ignored.
    Padding is not read. A pitch may be smaller than the shape: windows may overlap.
    """
    return _identity(arrays, dims, scalars, dtype)


def _store(arrays: Sequence[Array], dims: Dims, scalars: Sequence[Array], dtype: np.dtype[Any]) -> Array:
    """Write element `(x_0 ... x_{n-1})` to element offset `((x_0*p_1 + x_1)*p_2 + ...) + x_{n-1}`.

    `p_k` is `strides[k]`, or the tensor's `shape[k]` where that is 0; `strides[0]` is ignored. Padding is not written.
    A pitch smaller than the shape is an error.
    """
    return _identity(arrays, dims, scalars, dtype)


def _own_type(tensors: Sequence[TensorType], _dims: Dims, element: Type) -> list[TensorType]:
    _check_same_element(tensors[0], element)
    return [tensors[0]]


def _tovector(arrays: Sequence[Array], dims: Dims, scalars: Sequence[Array], dtype: np.dtype[Any]) -> Array:
    """The flattened vector of a token: the same tensor in the same layout; padding positions are zero."""
    return _identity(arrays, dims, scalars, dtype)


_SHAPE: Final = Operand("shape", Kind.DIMS, "positions of each memory dimension, outermost first, padding included")
_LAYOUT: Final = Operand("layout", Kind.DIMS, "logical dimension stored at each memory position", like_previous=True)
_PADDING: Final = Operand(
    "padding", Kind.DIMS, "positions at the end of each memory dimension that hold no data", like_previous=True
)
_LOAD_STRIDES: Final = Operand(
    "strides", Kind.DIMS, "pitch of each dimension in the enclosing array, 0 for dense", like_previous=True
)
_STORE_STRIDES: Final = Operand("strides", Kind.DIMS, "pitch of each dimension in the enclosing array, 0 for dense")
_POINTER: Final = Operand("pointer", Kind.POINTER, "where the first element is")
_STORED: Final = Operand("tensor", Kind.TENSOR, "the tensor to write")

_MEMORY: Final = (
    Intrinsic(
        "typeinfo",
        (
            Operand("tensor", Kind.FLAT, "the flattened vector, or a pointer to it (`byval` or `elementtype`)"),
            _SHAPE,
            _LAYOUT,
            _PADDING,
        ),
        "token",
        "Says what shape, layout and padding a flattened vector has.",
        _described_type,
        _typeinfo,
        """\
%t = call token @llvm.tensor.typeinfo(<240 x float> %v, <3 x i32> <i32 16, i32 5, i32 3>,
                                      <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> <i32 3, i32 2, i32 1>)
%u = call <240 x float> @llvm.tensor.tovector(token %t)""",
        effects="typeinfo",
    ),
    Intrinsic(
        "totensor",
        (Operand("vector", Kind.FLAT, "the flattened vector"), _SHAPE, _LAYOUT, _PADDING),
        "token",
        "Makes a token for a flattened vector; another name of `llvm.tensor.typeinfo`.",
        _described_type,
        _typeinfo,
        """\
%t = call token @llvm.vector.totensor(<12 x float> %v, <2 x i32> <i32 3, i32 4>,
                                      <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
%u = call <12 x float> @llvm.tensor.tovector(token %t)""",
        effects="typeinfo",
        prefix="llvm.vector.",
    ),
    Intrinsic(
        "load",
        (_POINTER, _SHAPE, _LAYOUT, _PADDING, _LOAD_STRIDES),
        "token",
        "Loads a tensor, or a part of a larger one, from memory.",
        _described_type,
        _load,
        """\
; a 16 x 6 x 4 part of an array whose rows are 8 elements apart
%t = call token @llvm.tensor.load(ptr elementtype(float) %p, <3 x i32> <i32 16, i32 6, i32 4>,
                                  <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> zeroinitializer,
                                  <3 x i32> <i32 0, i32 0, i32 8>)
call void @llvm.tensor.store(ptr %q, token %t, <3 x i32> zeroinitializer)""",
        effects="read",
    ),
    Intrinsic(
        "store",
        (_POINTER, _STORED, _STORE_STRIDES),
        "void",
        "Stores a tensor to memory, or into a part of a larger one.",
        _nothing,
        _store,
        """\
%t = call token @llvm.tensor.typeinfo(<384 x float> %v, <3 x i32> <i32 16, i32 6, i32 4>,
                                      <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> zeroinitializer)
; rows 10 elements apart, in planes of 12 rows
call void @llvm.tensor.store(ptr %p, token %t, <3 x i32> <i32 0, i32 12, i32 10>)""",
        effects="write",
        variants=((_POINTER, _STORE_STRIDES, _STORED),),
    ),
    Intrinsic(
        "tovector",
        (Operand("x", Kind.TENSOR, "the tensor"),),
        "vector",
        "Gives the flattened vector of a token.",
        _own_type,
        _tovector,
        """\
%t = call token @llvm.tensor.load(ptr %p, <2 x i32> <i32 3, i32 4>, <2 x i32> <i32 0, i32 1>,
                                  <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
%v = call <12 x float> @llvm.tensor.tovector(token %t)""",
    ),
)


# Matrix products ---------------------------------------------------------------------------------------------------


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
    _check_extends("lhs", lhs.element, element, "the result")
    _check_extends("rhs", rhs.element, element, "the result")
    left, right = _paddings(lhs), _paddings(rhs)
    kept = [a or b for a, b in zip(left[:-2], right[:-2], strict=True)]
    return _results(element, (*lhs.extents[:-1], rhs.extents[-1]), [*kept, left[-2], right[-1]])


def _matmul(arrays: Sequence[Array], _dims: Dims, _scalars: Sequence[Array], dtype: np.dtype[Any]) -> Array:
    """`L(lhs) @ L(rhs)` over the last two logical dimensions, for each index of the outer ones.

    Integers are signed and wrap. Operands narrower than the result are extended to it first.
    """
    from tlx.numpy_types import extend, narrow, working_type

    lhs, rhs = (extend(array, working_type(dtype)) for array in arrays)
    return narrow(_product(lhs, rhs), dtype)


def _product(lhs: Array, rhs: Array) -> Array:
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
        _check_extends("lhs", lhs.element, element, "acc")
        _check_extends("rhs", rhs.element, element, "acc")
        pads = [_paddings(acc)[0] or _paddings(lhs)[0], _paddings(acc)[1] or _paddings(rhs)[1]]
        return _results(element, product, pads)

    return infer


def _mma(lhs_signed: bool, rhs_signed: bool) -> Meaning:
    """What a matrix product with an accumulator computes."""

    def meaning(arrays: Sequence[Array], _dims: Dims, _scalars: Sequence[Array], dtype: np.dtype[Any]) -> Array:
        from tlx.numpy_types import extend, narrow, working_type

        work = working_type(dtype)
        acc, lhs, rhs = arrays
        product = _product(extend(lhs, work, signed=lhs_signed), extend(rhs, work, signed=rhs_signed))
        return narrow(extend(acc, work) + product, dtype)

    meaning.__doc__ = f"""`L(acc) + L(lhs) @ L(rhs)` on matrices.

    Integers of `lhs` are {_SIGN[lhs_signed]}, those of `rhs` {_SIGN[rhs_signed]}. Both are extended to the
    accumulator's type first; arithmetic wraps.{" Floats are taken as well." if lhs_signed and rhs_signed else ""}
    """
    return meaning


_SIGN: Final = {True: "signed", False: "unsigned"}


_ACC: Final = Operand("acc", Kind.TENSOR, "M x N matrix that the product is added to")
_LHS: Final = Operand("lhs", Kind.TENSOR, "M x K matrix")
_RHS: Final = Operand("rhs", Kind.TENSOR, "K x N matrix")


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

_PRODUCTS: Final = (
    Intrinsic(
        "matmul",
        (
            Operand("lhs", Kind.TENSOR, "M x K matrix, or a batch of them"),
            Operand("rhs", Kind.TENSOR, "K x N matrix, or a batch of them"),
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


# Moving elements about ---------------------------------------------------------------------------------------------


def _transpose_type(tensors: Sequence[TensorType], dims: Dims, element: Type) -> list[TensorType]:
    (tensor,) = tensors
    _check_same_element(tensor, element)
    if dims:
        _check_permutation("new_layout", dims[0], tensor.rank)
        return [tensor.transposed(dims[0])]
    if tensor.rank < 2:
        message = f"x has rank {tensor.rank}: the form without new_layout swaps the last two of at least 2 dimensions"
        raise RuleError(message, "x")
    *outer, row, column = tensor.layout
    return [tensor.transposed((*outer, column, row))]


def _transpose(arrays: Sequence[Array], dims: Dims, scalars: Sequence[Array], dtype: np.dtype[Any]) -> Array:
    """The same logical tensor, stored in `new_layout` order: its shape, layout and padding follow.

    Without `new_layout` the last two memory dimensions are swapped. Giving the result another `typeinfo` with a
    row-major layout makes it the mathematical transpose.
    """
    return _identity(arrays, dims, scalars, dtype)


def _broadcast_type(tensors: Sequence[TensorType], dims: Dims, element: Type) -> list[TensorType]:
    (tensor,) = tensors
    _check_same_element(tensor, element)
    if not dims:
        return [tensor]
    shape, places = dims
    rank = len(shape)
    if len(places) != tensor.rank:
        message = f"dims {vector_text(places)} has {len(places)} entries and x has rank {tensor.rank}"
        raise RuleError(message, "dims")
    if len(set(places)) != len(places) or not all(0 <= place < rank for place in places):
        message = f"dims {vector_text(places)} must be distinct dimensions of the result, 0 to {rank - 1}"
        raise RuleError(message, "dims")
    paddings = [0] * rank
    for dimension, (place, extent) in enumerate(zip(places, tensor.extents, strict=True)):
        if extent not in (1, shape[place]):
            message = (
                f"dimension {dimension} of x has extent {extent} and becomes dimension {place} of "
                f"{extents_text(shape)}, extent {shape[place]}: extents must agree or be 1"
            )
            raise RuleError(message, "x")
        paddings[place] = _paddings(tensor)[dimension] if extent == shape[place] else 0
    return _results(element, shape, paddings)


def _broadcast(arrays: Sequence[Array], dims: Dims, scalars: Sequence[Array], dtype: np.dtype[Any]) -> Array:
    """With a scalar: a tensor of the type of `like` whose every data element is `scalar`.

    With `out_shape` and `dims`: dimension `i` of `x` becomes dimension `dims[i]` of the result, extents 1 stretch, and
    the result does not depend on its other dimensions (XLA's BroadcastInDim).
    """
    import numpy as np

    (x,) = arrays
    if scalars:
        return np.full(x.shape, scalars[0], dtype)
    shape, places = dims
    aligned = [1] * len(shape)
    for place, extent in zip(places, x.shape, strict=True):
        aligned[place] = extent
    order = sorted(range(len(places)), key=places.__getitem__)
    return np.broadcast_to(np.transpose(x, order).reshape(aligned), shape)


def _block_type(tensors: Sequence[TensorType], dims: Dims, element: Type) -> list[TensorType]:
    (tensor,) = tensors
    blocked, sizes = dims
    _check_same_element(tensor, element)
    if not all(0 <= dimension < tensor.rank for dimension in blocked):
        message = f"dims {vector_text(blocked)} must be dimensions of x, 0 to {tensor.rank - 1}"
        raise RuleError(message, "dims")
    if len(blocked) != len(sizes):
        message = f"dims {vector_text(blocked)} and sizes {vector_text(sizes)} must have as many entries"
        raise RuleError(message, "sizes")
    if min(sizes) < 1:
        message = f"sizes {vector_text(sizes)} must be at least 1"
        raise RuleError(message, "sizes")
    outer = [
        -(-extent // math.prod(size for dimension, size in zip(blocked, sizes, strict=True) if dimension == d))
        for d, extent in enumerate(tensor.extents)
    ]
    kept = [0 if d in blocked else padding for d, padding in enumerate(_paddings(tensor))]
    return _results(element, (*outer, *sizes), [*kept, *(0 for _ in sizes)])


def _block(arrays: Sequence[Array], dims: Dims, _scalars: Sequence[Array], _dtype: np.dtype[Any]) -> Array:
    """Blocked storage: from each listed dimension a block of that size is split off.

    The blocks are new innermost dimensions, in list order; where a dimension is listed more than once its later block
    is the inner one (`dims <1, 0, 1>`, `sizes <4, 16, 4>` is `OI4i16o4i`). Extents are rounded up; what is added is
    zero, and data of the result.
    """
    import numpy as np

    (x,) = arrays
    rank = x.ndim
    for dimension, size in reversed(list(zip(*dims, strict=True))):
        fill = [(0, -x.shape[d] % size if d == dimension else 0) for d in range(x.ndim)]
        x = np.pad(x, fill)
        split = x.reshape(*x.shape[:dimension], x.shape[dimension] // size, size, *x.shape[dimension + 1 :])
        x = np.moveaxis(split, dimension + 1, rank)
    return x


def _permute_type(tensors: Sequence[TensorType], dims: Dims, element: Type) -> list[TensorType]:
    (tensor,) = tensors
    order, shape = dims
    _check_same_element(tensor, element)
    _check_permutation("perm", order, tensor.rank)
    if min(shape) < 1 or math.prod(shape) != math.prod(tensor.extents):
        message = (
            f"new_shape {extents_text(shape)} has {math.prod(shape)} elements and x, {extents_text(tensor.extents)}, "
            f"has {math.prod(tensor.extents)}"
        )
        raise RuleError(message, "new_shape")
    permuted = tuple(tensor.extents[d] for d in order)
    paddings = [_paddings(tensor)[d] for d in order] if permuted == shape else [0] * len(shape)
    return _results(element, shape, paddings)


def _permute(arrays: Sequence[Array], dims: Dims, _scalars: Sequence[Array], _dtype: np.dtype[Any]) -> Array:
    """Dimension `i` of the result before reshaping is dimension `perm[i]` of `x`; then it is reshaped, row-major."""
    import numpy as np

    order, shape = dims
    return np.transpose(arrays[0], order).reshape(shape)


_MOVES: Final = (
    Intrinsic(
        "transpose",
        (
            Operand("x", Kind.TENSOR, "the tensor"),
            Operand("new_layout", Kind.DIMS, "logical dimension to store at each memory position"),
        ),
        "vector",
        "Stores a tensor in another layout.",
        _transpose_type,
        _transpose,
        """\
%t = call token @llvm.tensor.typeinfo(<240 x float> %v, <3 x i32> <i32 16, i32 5, i32 3>,
                                      <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> <i32 3, i32 2, i32 1>)
%u = call <240 x float> @llvm.tensor.transpose(token %t, <3 x i32> <i32 2, i32 0, i32 1>)
; the result's shape is <3, 16, 5>, its padding <1, 3, 2>
%w = call token @llvm.tensor.typeinfo(<240 x float> %u, <3 x i32> <i32 3, i32 16, i32 5>,
                                      <3 x i32> <i32 2, i32 0, i32 1>, <3 x i32> <i32 1, i32 3, i32 2>)""",
        variants=((Operand("x", Kind.TENSOR, "the tensor"),),),
    ),
    Intrinsic(
        "broadcast",
        (
            Operand("like", Kind.TENSOR, "tensor whose type the result has"),
            Operand("scalar", Kind.SCALAR, "value of every element"),
        ),
        "vector",
        "Fills a tensor with a scalar, or repeats a tensor along further dimensions.",
        _broadcast_type,
        _broadcast,
        """\
%bias = call token @llvm.tensor.typeinfo(<4 x float> %v, <1 x i32> <i32 4>, <1 x i32> zeroinitializer,
                                         <1 x i32> zeroinitializer)
; the bias as each of three rows
%rows = call <12 x float> @llvm.tensor.broadcast(token %bias, <2 x i32> <i32 3, i32 4>, <1 x i32> <i32 1>)
%twos = call <4 x float> @llvm.tensor.broadcast(token %bias, float 2.0)""",
        variants=(
            (
                Operand("x", Kind.TENSOR, "the tensor to repeat"),
                Operand("out_shape", Kind.DIMS, "extents of the result"),
                Operand("dims", Kind.DIMS, "dimension of the result that each dimension of `x` becomes"),
            ),
        ),
    ),
    Intrinsic(
        "reshape.block",
        (
            Operand("x", Kind.TENSOR, "the tensor"),
            Operand("dims", Kind.DIMS, "logical dimensions to split"),
            Operand("sizes", Kind.DIMS, "size of each block"),
        ),
        "vector",
        "Splits dimensions into blocks, as packing for a kernel does.",
        _block_type,
        _block,
        """\
%t = call token @llvm.tensor.typeinfo(<15 x float> %v, <2 x i32> <i32 3, i32 5>,
                                      <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
; 3 x 5 -> 3 x 2 x 4, the last three columns zero
%u = call <24 x float> @llvm.tensor.reshape.block(token %t, <1 x i32> <i32 1>, <1 x i32> <i32 4>)""",
    ),
    Intrinsic(
        "reshape.permute",
        (
            Operand("x", Kind.TENSOR, "the tensor"),
            Operand("perm", Kind.DIMS, "order of the logical dimensions"),
            Operand("new_shape", Kind.DIMS, "extents of the result"),
        ),
        "vector",
        "Permutes the logical dimensions, then reshapes.",
        _permute_type,
        _permute,
        """\
; rows k, k+1 of B interleaved -> B
%t = call token @llvm.tensor.load(ptr %p, <3 x i32> <i32 8, i32 16, i32 2>, <3 x i32> <i32 0, i32 1, i32 2>,
                                  <3 x i32> zeroinitializer, <3 x i32> zeroinitializer)
%b = call <256 x bfloat> @llvm.tensor.reshape.permute(token %t, <3 x i32> <i32 0, i32 2, i32 1>,
                                                      <2 x i32> <i32 16, i32 16>)""",
    ),
)

INTRINSICS: Final = (*_MEMORY, *_PRODUCTS, *_MOVES)
_BY_NAME: Final = {row.prefix + name: row for row in INTRINSICS for name in (row.name, *row.aliases)}
