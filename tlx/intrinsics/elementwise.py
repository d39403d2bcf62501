"""Functions of one tensor, element by element."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from tlx.intrinsics.core import Intrinsic, Operand, OperandKind, RuleError, own_type
from tlx.intrinsics.tensor_type import TensorType
from tlx.ir.types import FloatType, Type

if TYPE_CHECKING:
    from typing import Any

    import numpy as np

    from tlx.intrinsics.core import Dims, Infer, Meaning
    from tlx.intrinsics.numpy_types import Array

_TYPES: Final = "The result has the shape, layout and padding of `x`; padding positions are zero."
_ACCURACY: Final = """\
The result is within 4 ulp of the infinitely precise one for float and double; half and bfloat are computed in float
and rounded. What becomes of infinities, NaNs and signed zeros is as in IEEE 754 and C."""


def _of_floats(name: str) -> Infer:
    """The rule of what takes floats only."""

    def infer(tensors: Sequence[TensorType], dims: Dims, element: Type) -> list[TensorType]:
        if not isinstance(tensors[0].element, FloatType):
            message = f"x has elements of type {tensors[0].element}: {name} takes floats, convert x first"
            raise RuleError(message, "x")
        return own_type(tensors, dims, element)

    return infer


def _function(name: str, x: Array) -> Array:
    """The function of the name in numpy, in the type of `x`."""
    import numpy as np

    with np.errstate(all="ignore"):
        return 1 / (1 + np.exp(-x)) if name == "sigmoid" else getattr(np, name)(x)


def _rounded(name: str, text: str) -> Meaning:
    """The meaning of a function that rounds: computed in a type wider than the elements', then rounded."""

    def meaning(arrays: Sequence[Array], _dims: Dims, _scalars: Sequence[Array], dtype: np.dtype[Any]) -> Array:
        import numpy as np

        from tlx.intrinsics.numpy_types import narrow

        wide = np.longdouble if dtype == np.float64 else np.float64
        return narrow(_function(name, arrays[0].astype(wide)), dtype)

    meaning.__doc__ = f"{text}\n\n{_ACCURACY}\n\n{_TYPES}"
    return meaning


def _exact(name: str, text: str) -> Meaning:
    """The meaning of a function whose result is correctly rounded.

    Rounding what double gave once more is right: floor and ceil are exact, and the square root of a narrower number
    never lies so near the middle of two neighbours that its rounding to double matters.
    """

    def meaning(arrays: Sequence[Array], _dims: Dims, _scalars: Sequence[Array], dtype: np.dtype[Any]) -> Array:
        import numpy as np

        from tlx.intrinsics.numpy_types import narrow

        return narrow(_function(name, arrays[0].astype(np.float64)), dtype)

    meaning.__doc__ = f"{text}\n\n{_TYPES}"
    return meaning


def _relu(arrays: Sequence[Array], _dims: Dims, _scalars: Sequence[Array], dtype: np.dtype[Any]) -> Array:
    import numpy as np

    (x,) = arrays
    if dtype.kind == "b":  # the signed numbers of one bit are 0 and -1
        return np.zeros_like(x)
    zero = np.zeros((), dtype)
    with np.errstate(invalid="ignore"):
        return np.where((x > zero) | (x != x), x, zero)  # noqa: PLR0124 - a NaN differs from itself


_relu.__doc__ = f"""`x` where that is greater than zero, else zero.

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


def _row(name: str, doc: str, meaning: Meaning, infer: Infer | None = None) -> Intrinsic:
    operands = (Operand("x", OperandKind.TENSOR, "the tensor"),)
    return Intrinsic(name, operands, "vector", doc, infer or _of_floats(name), meaning, _EXAMPLE.replace("NAME", name))


ELEMENTWISE: Final = (
    _row("relu", "Replaces negative elements by zero.", _relu, own_type),
    _row("tanh", "Hyperbolic tangent.", _rounded("tanh", "The hyperbolic tangent.")),
    _row("sigmoid", "Logistic function.", _rounded("sigmoid", "`1 / (1 + exp(-x))`.")),
    _row("sin", "Sine.", _rounded("sin", "The sine of an angle in radians.")),
    _row("cos", "Cosine.", _rounded("cos", "The cosine of an angle in radians.")),
    _row("exp", "Exponential function.", _rounded("exp", "`e` to the power of `x`.")),
    _row("exp2", "Power of two.", _rounded("exp2", "2 to the power of `x`.")),
    _row("log", "Natural logarithm.", _rounded("log", "The logarithm to base `e`; NaN below zero.")),
    _row("log2", "Binary logarithm.", _rounded("log2", "The logarithm to base 2; NaN below zero.")),
    _row("log10", "Decimal logarithm.", _rounded("log10", "The logarithm to base 10; NaN below zero.")),
    _row("sqrt", "Square root.", _exact("sqrt", "The square root, correctly rounded; NaN below zero.")),
    _row("fabs", "Absolute value.", _fabs),
    _row("floor", "Rounds down.", _exact("floor", "The largest integer that is not greater than `x`; -0 stays -0.")),
    _row("ceil", "Rounds up.", _exact("ceil", "The smallest integer that is not less than `x`; -0.5 becomes -0.")),
)
