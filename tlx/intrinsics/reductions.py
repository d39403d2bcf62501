"""Reductions of windows that slide over a tensor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from tlx.intrinsics.core import Intrinsic, Operand, OperandKind, RuleError, check_same_element, row_major_results
from tlx.intrinsics.tensor_type import TensorType, vector_text
from tlx.ir.types import IntType, Type

if TYPE_CHECKING:
    from typing import Any

    import numpy as np

    from tlx.intrinsics.core import Dims, Infer, Meaning
    from tlx.intrinsics.numpy_types import Array

_WINDOWS: Final = """\
The window lies at every multiple of `strides` where it is inside the tensor as a whole ("valid"), so the result has
`(extent - window) / strides + 1` elements along a dimension, rounded down. It is row-major without padding."""
_UFUNCS: Final = {
    "add": "add",
    "mul": "multiply",
    "max": "maximum",
    "min": "minimum",
    "and": "bitwise_and",
    "or": "bitwise_or",
    "xor": "bitwise_xor",
}


def check_window(extents: Sequence[int], window: Sequence[int], strides: Sequence[int]) -> None:
    """A window must have an entry a dimension, fit into the tensor, and move on."""
    for name, numbers in (("window", window), ("strides", strides)):
        if len(numbers) != len(extents):
            message = f"{name} {vector_text(numbers)} has {len(numbers)} entries and x has rank {len(extents)}"
            raise RuleError(message, name)
        if min(numbers) < 1:
            raise RuleError(f"{name} {vector_text(numbers)} must be at least 1 in every dimension", name)
    for dimension, (extent, size) in enumerate(zip(extents, window, strict=True)):
        if size > extent:
            message = f"window {vector_text(window)} does not fit: dimension {dimension} of x has extent {extent}"
            raise RuleError(message, "window")


def _reduce_type(bits_only: bool) -> Infer:
    """The rule of reductions, of those that take integers only if so."""

    def infer(tensors: Sequence[TensorType], dims: Dims, element: Type) -> list[TensorType]:
        (x,) = tensors
        window, strides = dims
        check_same_element(x, element)
        if bits_only and not isinstance(element, IntType):
            raise RuleError(f"x has elements of type {element}: bits are those of integers", "x")
        check_window(x.extents, window, strides)
        sizes = zip(x.extents, window, strides, strict=True)
        return row_major_results(element, [(e - w) // s + 1 for e, w, s in sizes], [0] * x.rank)

    return infer


def _reduce(operation: str, text: str) -> Meaning:
    """What a reduction by a numpy function computes."""

    def meaning(arrays: Sequence[Array], dims: Dims, _scalars: Sequence[Array], dtype: np.dtype[Any]) -> Array:
        import numpy as np

        from tlx.intrinsics.numpy_types import extend, narrow, working_type

        window, strides = dims
        x = extend(arrays[0], working_type(dtype))
        every = np.lib.stride_tricks.sliding_window_view(x, window)
        windows = every[tuple(slice(None, None, stride) for stride in strides)]
        inner = tuple(range(x.ndim, 2 * x.ndim))
        ufunc: np.ufunc = getattr(np, _UFUNCS[operation])
        with np.errstate(all="ignore"):
            return narrow(ufunc.reduce(windows, axis=inner, dtype=x.dtype), dtype)

    meaning.__doc__ = f"{text}\n\n{_WINDOWS}"
    return meaning


_EXAMPLE: Final = """\
%t = call token @llvm.tensor.typeinfo(<ELEMENTS> %v, <2 x i32> <i32 4, i32 6>,
                                      <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
; of each row
%rows = call <4 x TYPE> @llvm.tensor.reduce.NAME(token %t, <2 x i32> <i32 1, i32 6>, <2 x i32> <i32 1, i32 1>)
; of 2 x 2 windows, two apart: pooling
%pool = call <6 x TYPE> @llvm.tensor.reduce.NAME(token %t, <2 x i32> <i32 2, i32 2>, <2 x i32> <i32 2, i32 2>)"""


def _row(name: str, doc: str, text: str, bits_only: bool = False) -> Intrinsic:
    element = "i32" if bits_only else "float"
    example = _EXAMPLE.replace("NAME", name).replace("ELEMENTS", f"24 x {element}").replace("TYPE", element)
    operands = (
        Operand("x", OperandKind.TENSOR, "the tensor"),
        Operand("window", OperandKind.DIMS, "extent of the window in each logical dimension"),
        Operand(
            "strides", OperandKind.DIMS, "how far the window moves on in each logical dimension", like_previous=True
        ),
    )
    infer, meaning = _reduce_type(bits_only), _reduce(name, text)
    return Intrinsic(f"reduce.{name}", operands, "vector", doc, infer, meaning, example)


_SUMS: Final = "Integers wrap; the order of floating-point operations is free."
_EXTREMES: Final = "Integers are signed. A NaN in a window is its result; of zeros that differ in sign either may be."

REDUCTIONS: Final = (
    _row("add", "Adds the elements of each window.", f"The sum of each window. {_SUMS}"),
    _row("mul", "Multiplies the elements of each window.", f"The product of each window. {_SUMS}"),
    _row("max", "Finds the greatest element of each window.", f"The greatest element of each window. {_EXTREMES}"),
    _row("min", "Finds the least element of each window.", f"The least element of each window. {_EXTREMES}"),
    _row("and", "Bitwise and of each window.", "The bitwise and of the integers of each window.", bits_only=True),
    _row("or", "Bitwise or of each window.", "The bitwise or of the integers of each window.", bits_only=True),
    _row("xor", "Bitwise xor of each window.", "The bitwise xor of the integers of each window.", bits_only=True),
)
