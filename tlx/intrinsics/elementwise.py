"""Elementwise functions of one tensor, and reductions over sliding windows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from tlx.intrinsics.core import (
    Intrinsic,
    Operand,
    OperandKind,
    RuleError,
    check_same_element,
    own_type,
    row_major_results,
)
from tlx.intrinsics.tensor_type import TensorType, vector_text
from tlx.ir.types import FloatType, IntType, Type

if TYPE_CHECKING:
    from typing import Any

    import numpy as np

    from tlx.intrinsics.core import Dims, Infer, Meaning
    from tlx.intrinsics.numpy_types import Array

_NEAR: Final = 1.5
_ERF_TERMS: Final = 40
_ERFC_TERMS: Final = 160
_TYPES: Final = "The result has the shape, layout and padding of `x`; padding positions are zero."
_ACCURACY: Final = """\
The result is within 4 ulp of the exact one for float and double; half and bfloat are computed in float and rounded.
Infinities, NaNs and signed zeros are treated as in IEEE 754 and C."""


def _of_floats(name: str) -> Infer:
    """The typing rule of functions of floats."""

    def infer(tensors: Sequence[TensorType], dims: Dims, element: Type) -> list[TensorType]:
        if not isinstance(tensors[0].element, FloatType):
            message = f"x has elements of type {tensors[0].element}: {name} takes floats, convert x first"
            raise RuleError(message, "x")
        return own_type(tensors, dims, element)

    return infer


def _in_numpy(name: str, x: Array) -> Array:
    """A function of numpy by name, or one that numpy lacks, computed in the type of `x`."""
    import numpy as np

    with np.errstate(all="ignore"):
        if name == "erfc":
            return _erfc(x)
        return 1 / (1 + np.exp(-x)) if name == "sigmoid" else getattr(np, name)(x)


def _erfc(x: Array) -> Array:
    """The complementary error function: a series of positive terms below 1.5, a continued fraction above.

    e^(-x²) = e^(-z²) e^((z - x) (z + x)), where z is x with so few bits that its square is exact.
    """
    import numpy as np

    a = np.minimum(np.abs(x), 40)  # whose erfc is zero
    z = np.round(a * 2**20) / 2**20
    power = np.exp(-z * z) * np.exp((z - a) * (z + a))
    total, near = np.ones_like(a), np.minimum(a, _NEAR)
    for n in range(_ERF_TERMS, 0, -1):
        total = total * (2 * near * near / (2 * n + 1)) + 1
    far, fraction = np.maximum(a, _NEAR), np.zeros_like(a)
    for n in range(_ERFC_TERMS, 0, -1):
        fraction = n / 2 / (far + fraction)
    root = np.sqrt(np.arctan(np.ones((), a.dtype)) * 4)
    tail = np.where(a < _NEAR, 1 - 2 * a * power * total / root, power / (far + fraction) / root)
    return np.where(x < 0, 2 - tail, tail)


def _rounded(name: str, text: str) -> Meaning:
    """The meaning of a function that rounds: computed in a type wider than the elements', then rounded."""

    def meaning(arrays: Sequence[Array], _dims: Dims, _scalars: Sequence[Array], dtype: np.dtype[Any]) -> Array:
        import numpy as np

        from tlx.intrinsics.numpy_types import narrow

        wide = np.longdouble if dtype == np.float64 else np.float64
        return narrow(_in_numpy(name, arrays[0].astype(wide)), dtype)

    meaning.__doc__ = f"{text}\n\n{_ACCURACY}\n\n{_TYPES}"
    return meaning


def _exact(name: str, text: str) -> Meaning:
    """The meaning of a function whose result is correctly rounded.

    Rounding the double result again is correct: floor and ceil are exact, and the square root of a narrower number is
    never close enough to the midpoint of two neighbours for double rounding to matter.
    """

    def meaning(arrays: Sequence[Array], _dims: Dims, _scalars: Sequence[Array], dtype: np.dtype[Any]) -> Array:
        import numpy as np

        from tlx.intrinsics.numpy_types import narrow

        return narrow(_in_numpy(name, arrays[0].astype(np.float64)), dtype)

    meaning.__doc__ = f"{text}\n\n{_TYPES}"
    return meaning


def _relu(arrays: Sequence[Array], _dims: Dims, _scalars: Sequence[Array], dtype: np.dtype[Any]) -> Array:
    import numpy as np

    (x,) = arrays
    if dtype.kind == "b":  # a signed i1 is 0 or -1
        return np.zeros_like(x)
    zero = np.zeros((), dtype)
    with np.errstate(invalid="ignore"):
        return np.where((x > zero) | (x != x), x, zero)  # noqa: PLR0124 - a NaN differs from itself


_relu.__doc__ = f"""`x` if it is greater than zero, else zero.

A NaN stays NaN, and zeros of both signs become +0. Integers are signed.

{_TYPES}"""


def _fabs(arrays: Sequence[Array], _dims: Dims, _scalars: Sequence[Array], _dtype: np.dtype[Any]) -> Array:
    import numpy as np

    (x,) = arrays
    bits = np.ascontiguousarray(x).view(f"u{x.dtype.itemsize}")
    return (bits & bits.dtype.type((1 << (8 * x.dtype.itemsize - 1)) - 1)).view(x.dtype)


_fabs.__doc__ = f"""The absolute value: the sign bit is cleared, of zeros and NaNs too.

{_TYPES}"""


_EXAMPLE: Final = """\
%t = call token @llvm.tensor.typeinfo(<12 x float> %v, <2 x i32> <i32 3, i32 4>,
                                      <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
%u = call <12 x float> @llvm.tensor.NAME(token %t)"""


def _row(name: str, doc: str, meaning: Meaning, infer: Infer | None = None, *, is_function: bool = False) -> Intrinsic:
    operands = (Operand("x", OperandKind.TENSOR, "the tensor"),)
    example = _EXAMPLE.replace("NAME", name)
    infer = infer or _of_floats(name)
    return Intrinsic(name, operands, "vector", doc, infer, meaning, example, is_function=is_function)


def _function(name: str, doc: str, text: str) -> Intrinsic:
    """The row of an elementary function; `text` begins its reference page."""
    return _row(name, doc, _rounded(name, text), is_function=True)


ELEMENTWISE: Final = (
    _row("relu", "Replaces negative elements by zero.", _relu, own_type),
    _function("tanh", "Hyperbolic tangent.", "The hyperbolic tangent."),
    _function("sigmoid", "Logistic function.", "`1 / (1 + exp(-x))`."),
    _function("erfc", "Complementary error function.", "`1 - erf(x)`, relatively exact also where it is small."),
    _function("sin", "Sine.", "The sine of an angle in radians."),
    _function("cos", "Cosine.", "The cosine of an angle in radians."),
    _function("exp", "Exponential function.", "`e` to the power of `x`."),
    _function("exp2", "Power of two.", "2 to the power of `x`."),
    _function("log", "Natural logarithm.", "The logarithm to base `e`; NaN below zero."),
    _function("log2", "Binary logarithm.", "The logarithm to base 2; NaN below zero."),
    _function("log10", "Decimal logarithm.", "The logarithm to base 10; NaN below zero."),
    _row("sqrt", "Square root.", _exact("sqrt", "The square root, correctly rounded; NaN below zero.")),
    _row("fabs", "Absolute value.", _fabs),
    _row("floor", "Rounds down.", _exact("floor", "The largest integer that is not greater than `x`; -0 stays -0.")),
    _row("ceil", "Rounds up.", _exact("ceil", "The smallest integer that is not less than `x`; -0.5 becomes -0.")),
)
_WINDOWS: Final = """\
The window is at every multiple of `strides` where it is entirely inside the tensor ("valid"), so the result has
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
    """Check that a window has an entry for each dimension and fits into the tensor, and that strides are positive."""
    for name, numbers in (("window", window), ("strides", strides)):
        if len(numbers) != len(extents):
            message = f"{name} {vector_text(numbers)} must have {len(extents)} entries, the rank of x"
            raise RuleError(message, name)
        if min(numbers) < 1:
            raise RuleError(f"{name} {vector_text(numbers)} must be at least 1 in every dimension", name)
    for dimension, (extent, size) in enumerate(zip(extents, window, strict=True)):
        if size > extent:
            message = f"window {vector_text(window)} does not fit: dimension {dimension} of x has extent {extent}"
            raise RuleError(message, "window")


def _reduce_type(bits_only: bool) -> Infer:
    """The typing rule of reductions.

    Args:
        bits_only: Whether the reduction takes integers only.
    """

    def infer(tensors: Sequence[TensorType], dims: Dims, element: Type) -> list[TensorType]:
        (x,) = tensors
        window, strides = dims
        check_same_element(x, element)
        if bits_only and not isinstance(element, IntType):
            raise RuleError(f"x has elements of type {element}: bitwise reductions take integers only", "x")
        check_window(x.extents, window, strides)
        sizes = zip(x.extents, window, strides, strict=True)
        return row_major_results(element, [(e - w) // s + 1 for e, w, s in sizes], [0] * x.rank)

    return infer


def _reduce(operation: str, text: str) -> Meaning:
    """The meaning of a reduction by a numpy function."""

    def meaning(arrays: Sequence[Array], dims: Dims, _scalars: Sequence[Array], dtype: np.dtype[Any]) -> Array:
        import numpy as np

        from tlx.intrinsics.numpy_types import extend, narrow, working_type

        window, strides = dims
        x = extend(arrays[0], working_type(dtype))
        all_windows = np.lib.stride_tricks.sliding_window_view(x, window)
        windows = all_windows[tuple(slice(None, None, stride) for stride in strides)]
        inner = tuple(range(x.ndim, 2 * x.ndim))
        ufunc: np.ufunc = getattr(np, _UFUNCS[operation])
        with np.errstate(all="ignore"):
            return narrow(ufunc.reduce(windows, axis=inner, dtype=x.dtype), dtype)

    meaning.__doc__ = f"{text}\n\n{_WINDOWS}"
    return meaning


_REDUCTION_EXAMPLE: Final = """\
%t = call token @llvm.tensor.typeinfo(<ELEMENTS> %v, <2 x i32> <i32 4, i32 6>,
                                      <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
; of each row
%rows = call <4 x TYPE> @llvm.tensor.reduce.NAME(token %t, <2 x i32> <i32 1, i32 6>, <2 x i32> <i32 1, i32 1>)
; of 2 x 2 windows with stride 2: pooling
%pool = call <6 x TYPE> @llvm.tensor.reduce.NAME(token %t, <2 x i32> <i32 2, i32 2>, <2 x i32> <i32 2, i32 2>)"""


def _reduction(name: str, doc: str, text: str, bits_only: bool = False) -> Intrinsic:
    element = "i32" if bits_only else "float"
    example = _REDUCTION_EXAMPLE.replace("NAME", name).replace("ELEMENTS", f"24 x {element}").replace("TYPE", element)
    operands = (
        Operand("x", OperandKind.TENSOR, "the tensor"),
        Operand("window", OperandKind.DIMS, "extent of the window in each logical dimension"),
        Operand("strides", OperandKind.DIMS, "step of the window in each logical dimension", like_previous=True),
    )
    infer, meaning = _reduce_type(bits_only), _reduce(name, text)
    return Intrinsic(f"reduce.{name}", operands, "vector", doc, infer, meaning, example)


_SUMS: Final = "Integers wrap; the order of floating-point operations is free."
_EXTREMES: Final = "Integers are signed. The result of a window with a NaN is NaN; of zeros of both signs it is either."

REDUCTIONS: Final = (
    _reduction("add", "Adds the elements of each window.", f"The sum of each window. {_SUMS}"),
    _reduction("mul", "Multiplies the elements of each window.", f"The product of each window. {_SUMS}"),
    _reduction(
        "max", "Finds the greatest element of each window.", f"The greatest element of each window. {_EXTREMES}"
    ),
    _reduction("min", "Finds the least element of each window.", f"The least element of each window. {_EXTREMES}"),
    _reduction("and", "Bitwise and of each window.", "The bitwise and of the integers of each window.", bits_only=True),
    _reduction("or", "Bitwise or of each window.", "The bitwise or of the integers of each window.", bits_only=True),
    _reduction("xor", "Bitwise xor of each window.", "The bitwise xor of the integers of each window.", bits_only=True),
)
