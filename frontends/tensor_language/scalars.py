"""Scalars of the tensor language in numpy: element types of arrays, and numbers as compiled kernels take them."""

from __future__ import annotations

import math
import operator
import struct
from typing import Any, Final, cast

import numpy as np

from tlx.frontends.tensor_language.types import ScalarType
from tlx.ir.types import BFLOAT
from tlx.numpy_types import dtype_of as numpy_type

_FORMATS: Final = {"f16": struct.Struct("<e"), "f32": struct.Struct("<f"), "f64": struct.Struct("<d")}
_INFINITE: Final = 0x7F80  # the bits of bf16
_DTYPES: Final[dict[str, Any]] = {
    "i8": np.int8,
    "i16": np.int16,
    "i32": np.int32,
    "i64": np.int64,
    "index": np.int64,
    "f16": np.float16,
    "f32": np.float32,
    "f64": np.float64,
    "c32": np.complex64,
    "c64": np.complex128,
}


def dtype_of(type_: ScalarType) -> np.dtype[Any]:
    """The element type of arrays for a memref; ml_dtypes' for bf16, its bits where that is not installed."""
    if type_.name != "bf16":
        return np.dtype(_DTYPES[type_.name])
    dtype = numpy_type(BFLOAT)
    return dtype if dtype.itemsize == 2 else np.dtype(np.uint16)


def passed_scalar(type_: ScalarType, value: Any) -> Any:
    """A number as the compiled function takes it: the bits of bf16 and f16, an array of two parts for complex ones.

    Raises:
        TypeError: It is no number of that kind.
        OverflowError: The type has no such value.
    """
    return _PASSED[type_.kind](type_, value)


def _bool(_type: ScalarType, value: Any) -> bool:
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError
    return value is True or bool(cast("Any", value))


def _int(type_: ScalarType, value: Any) -> int:
    if isinstance(value, (bool, np.bool_, np.ndarray)):
        raise TypeError
    number = operator.index(value)
    if number not in type_.integers:
        raise OverflowError
    return number


def _float(type_: ScalarType, value: Any) -> float | int:
    if isinstance(value, (bool, np.bool_, np.ndarray, str, bytes)):
        raise TypeError
    number = float(value)
    if type_.is_narrow_float:
        return _bits(type_, number)
    return _rounded(type_, number)


def _complex(type_: ScalarType, value: Any) -> np.ndarray[Any, Any]:
    if isinstance(value, (bool, np.bool_, np.ndarray, str, bytes)):
        raise TypeError
    number = complex(value)
    parts = [_rounded(type_.part, number.real), _rounded(type_.part, number.imag)]
    return np.array(parts, _DTYPES[type_.part.name])


def _rounded(type_: ScalarType, number: float) -> float:
    """A number as f16, f32 or f64 has it; one that would be infinite is an OverflowError of `struct`."""
    form = _FORMATS[type_.name]
    return form.unpack(form.pack(number))[0]


def _bits(type_: ScalarType, number: float) -> int:
    """The bits of a 16-bit number, as a signed integer."""
    if type_.name == "f16":
        return int.from_bytes(_FORMATS["f16"].pack(number), "little", signed=True)
    rounded = _bfloat16(number)
    if rounded & 0x7FFF == _INFINITE and not math.isinf(number):
        raise OverflowError
    return int(np.array([rounded], np.uint16).view(np.int16)[0])


def _bfloat16(number: float) -> int:
    """The bits of the nearest bfloat16, ties to even; through f32 rounded to odd, so that nothing is rounded twice."""
    with np.errstate(over="ignore"):
        single = np.float32(number)
    bits = int(np.array([single]).view(np.uint32)[0])
    if math.isnan(number):
        return (bits >> 16) | 0x40
    if math.isfinite(number) and float(single) != number:
        away = abs(float(single)) > abs(number)
        bits = (bits - 1 if away else bits) | 1
    return (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16


_PASSED: Final = {"bool": _bool, "int": _int, "float": _float, "complex": _complex}
