"""How the evaluator holds values.

    iN                      Python int from 0 to 2**N - 1; pointers likewise, with N = 64
    half ... double         numpy scalar of that type (bfloat: ml_dtypes.bfloat16)
    <n x T>                 one-dimensional numpy array: bool for i1, unsigned for other integers up to 64 bits
                            (the next numpy width), objects (Python ints) above, uint64 for pointers
    [n x T], { ... }        tuple
    x86_amx                 array of 16 x 64 bytes
    token                   what the tensor intrinsics make of it

What LLVM leaves undefined (`undef`, `poison`, memory nobody wrote) has all bits set: as a float it is NaN, which no
test takes for a result.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tlx.diagnostics import EvaluationError
from tlx.evaluate.layout import Layout
from tlx.ir.types import (
    X86_AMX,
    ArrayType,
    FloatType,
    IntType,
    PointerType,
    StructType,
    Type,
    VectorType,
    scalar_of,
)

Value: TypeAlias = Any
Array: TypeAlias = NDArray[Any]
DType: TypeAlias = np.dtype[Any]


def _bfloat() -> DType:
    """The dtype of ml_dtypes; without that package a type of two bytes that no arithmetic takes."""
    try:
        import ml_dtypes
    except ImportError:
        return np.dtype("V2")
    return np.dtype(ml_dtypes.bfloat16)


BFLOAT16: DType = _bfloat()
_FLOATS: dict[str, DType] = {
    "half": np.dtype(np.float16),
    "bfloat": BFLOAT16,
    "float": np.dtype(np.float32),
    "double": np.dtype(np.float64),
}


@cache
def dtype_of(type_: Type) -> DType:
    """The numpy type that holds elements of a scalar type.

    Raises:
        EvaluationError: There is none (x86_fp80, fp128, ...).
    """
    if isinstance(type_, IntType):
        if type_.bits == 1:
            return np.dtype(np.bool_)
        width = next((w for w in (8, 16, 32, 64) if type_.bits <= w), None)
        return np.dtype(f"u{width // 8}") if width else np.dtype(object)
    if isinstance(type_, PointerType):
        return np.dtype(np.uint64)
    if isinstance(type_, FloatType) and type_.name in _FLOATS:
        return _FLOATS[type_.name]
    raise EvaluationError(f"the evaluator has no values of type {type_}")


def is_native(type_: Type) -> bool:
    """Whether elements of a scalar type lie in memory exactly as numpy holds them."""
    return not isinstance(type_, IntType) or type_.bits in (8, 16, 32, 64)


def width_of(type_: Type) -> int:
    """Bits of an integer or pointer, or of the elements of a vector of them."""
    scalar = scalar_of(type_)
    return scalar.bits if isinstance(scalar, IntType) else 64


def signed(number: int, bits: int) -> int:
    """The signed integer with these bits."""
    sign = 1 << (bits - 1)
    return (number ^ sign) - sign


def signed_array(numbers: Array, bits: int) -> Array:
    """The signed integers with these bits, in the signed type of the same width (objects above 64 bits)."""
    if numbers.dtype.kind == "O":
        return np.array([signed(int(n), bits) for n in numbers], object)
    if bits == 1:
        return -numbers.astype(np.int8)
    width = 8 * numbers.dtype.itemsize
    view = numbers.view(f"i{width // 8}")
    return view if width == bits else (view << (width - bits)) >> (width - bits)


def wrapped(numbers: Array, type_: Type) -> Array:
    """Integers of any type or size, modulo 2**N, in the array type that holds elements of iN."""
    bits, dtype = width_of(type_), dtype_of(type_)
    if numbers.dtype == dtype and bits in (8, 16, 32, 64):
        return numbers
    if bits == 1:
        return (numbers & 1).astype(np.bool_)
    if "O" in (dtype.kind, numbers.dtype.kind):
        return np.array([int(n) & ((1 << bits) - 1) for n in numbers], dtype)
    cast = numbers.astype(dtype)
    return cast if bits == 8 * dtype.itemsize else cast & dtype.type((1 << bits) - 1)


def vector(elements: Sequence[Value], type_: Type) -> Array:
    """A vector value from scalar values; `type_` is the element type."""
    return np.array(elements, dtype_of(type_))


def scalar(element: Value, type_: Type) -> Value:
    """A scalar value from an element of a vector."""
    return element if isinstance(type_, FloatType) else int(element)


def splat(element: Value, type_: VectorType) -> Array:
    """A vector of equal elements."""
    return np.full(type_.count, element, dtype_of(type_.element))


def zero(type_: Type, layout: Layout) -> Value:
    """The zero of a type."""
    return filled(type_, layout, 0)


def undefined(type_: Type, layout: Layout) -> Value:
    """What `undef` and `poison` are here: all bits set, or what the layout says."""
    return filled(type_, layout, layout.undefined)


def filled(type_: Type, layout: Layout, byte: int) -> Value:
    """The value whose bytes are all `byte` (0 or 255).

    Raises:
        EvaluationError: The type has no values here.
    """
    type_ = layout.resolve(type_)
    if isinstance(type_, (IntType, PointerType)):
        return (1 << width_of(type_)) - 1 if byte else 0
    if isinstance(type_, FloatType):
        return np.frombuffer(bytes([byte] * dtype_of(type_).itemsize), dtype_of(type_))[0]
    if isinstance(type_, VectorType) and (not type_.scalable or type_.count == 1):
        return splat(filled(type_.element, layout, byte), type_)
    if isinstance(type_, ArrayType):
        return (filled(type_.element, layout, byte),) * type_.count
    if isinstance(type_, StructType):
        return tuple(filled(e, layout, byte) for e in type_.elements)
    if type_ == X86_AMX:
        return np.full((16, 64), byte, np.uint8)
    raise EvaluationError(f"the evaluator has no values of type {type_}")
