"""Conversions between LLVM's scalar types and numpy's.

LLVM's integers have no sign; here they are arrays of numpy's signed types, and code that reads them as unsigned
converts them explicitly.
"""

from __future__ import annotations

from contextlib import suppress
from functools import cache
from importlib import import_module
from typing import Any, Final

import numpy as np

from tlx.intrinsics.small_floats import SMALL_FLOATS, SmallFloat
from tlx.ir.types import BFLOAT, DOUBLE, FLOAT, HALF, I1, I8, I16, I32, I64, Type

Array = np.ndarray[Any, np.dtype[Any]]

_DTYPES: Final[dict[Type, np.dtype[Any]]] = {
    I1: np.dtype(np.bool_),
    I8: np.dtype(np.int8),
    I16: np.dtype(np.int16),
    I32: np.dtype(np.int32),
    I64: np.dtype(np.int64),
    HALF: np.dtype(np.float16),
    FLOAT: np.dtype(np.float32),
    DOUBLE: np.dtype(np.float64),
}


def dtype_of(type_: Type) -> np.dtype[Any]:
    """The dtype of an LLVM scalar type: `i1` is bool, `bfloat` is that of ml_dtypes (float32 if not installed).

    Raises:
        ValueError: numpy has no such type.
    """
    if type_ == BFLOAT:
        return bfloat_dtype("float32")
    if type_ not in _DTYPES:
        message = f"numpy has no type for {type_}"
        raise ValueError(message)
    return _DTYPES[type_]


def memory_dtype(type_: Type) -> np.dtype[Any] | None:
    """The dtype of arrays that hold an LLVM scalar in its memory format; None if numpy has none.

    Without ml_dtypes, a `bfloat` is stored as its bits in a `uint16`.
    """
    if type_ == BFLOAT:
        return bfloat_dtype("uint16")
    return _DTYPES.get(type_)


@cache
def type_of(dtype: np.dtype[Any]) -> Type:
    """The LLVM type of a dtype; that of an unsigned integer is the integer of its width.

    Raises:
        ValueError: No element type of tensors has this format.
    """
    if dtype.name == "bfloat16":
        return BFLOAT
    if small_float_of(dtype) is not None:
        return I8
    if dtype.kind == "u":
        dtype = np.dtype(f"i{dtype.itemsize}")
    for type_, candidate in _DTYPES.items():
        if candidate == dtype:
            return type_
    message = f"no LLVM type for numpy's {dtype}"
    raise ValueError(message)


@cache
def small_float_of(dtype: np.dtype[Any]) -> SmallFloat | None:
    """The format of a dtype of 8 bits, such as float8_e5m2 of ml_dtypes; None for other types."""
    return next((format_ for format_ in SMALL_FLOATS if format_.dtype == dtype.name), None)


def named_dtype(name: str) -> np.dtype[Any]:
    """The dtype of a name, such as `float32`, or `bfloat16` of ml_dtypes.

    Raises:
        TypeError: There is none; ml_dtypes may be missing.
    """
    if name == "bfloat16":
        return bfloat_dtype("float32")
    if any(format_.dtype == name for format_ in SMALL_FLOATS):
        with suppress(ImportError):
            return np.dtype(getattr(import_module("ml_dtypes"), name))
    return np.dtype(name)


def is_float(dtype: np.dtype[Any]) -> bool:
    """Whether a dtype is a floating-point type, of numpy or of ml_dtypes (which are not subtypes of `np.floating`)."""
    return dtype.kind not in "biu"


def extend(array: Array, dtype: np.dtype[Any], *, signed: bool = True) -> Array:
    """Convert to a type at least as wide: integers are sign- or zero-extended, floats are exact.

    A signed `i1` is 0 or -1, as for LLVM's `sext`.
    """
    if is_float(array.dtype):
        return array.astype(dtype)
    if array.dtype.kind == "b":
        bits = array.astype(np.int8)
        return (-bits if signed else bits).astype(dtype)
    return array.astype(dtype) if signed else array.view(f"u{array.dtype.itemsize}").astype(dtype)


def working_type(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The type in which sums and products of `dtype` are computed: float64 for floats, `dtype` for integers."""
    if is_float(dtype):
        return np.dtype(np.float64)
    return np.dtype(np.int8) if dtype.kind == "b" else dtype


def narrow(array: Array, dtype: np.dtype[Any]) -> Array:
    """Round or wrap an array from `working_type(dtype)` to `dtype`."""
    if dtype.kind == "b":
        return (array & 1).astype(dtype)
    with np.errstate(all="ignore"):
        return array.astype(dtype)


@cache
def bfloat_dtype(substitute: str) -> np.dtype[Any]:
    """bfloat16 of ml_dtypes, or the substitute if that package is not installed."""
    try:
        import ml_dtypes
    except ImportError:
        return np.dtype(substitute)
    return np.dtype(ml_dtypes.bfloat16)
