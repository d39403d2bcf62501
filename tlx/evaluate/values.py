"""Values: how numpy represents them, how they are rounded, and their bytes in memory.

    iN                      Python int from 0 to 2**N - 1; pointers likewise, with N = 64
    half ... double         numpy scalar of that type (bfloat: ml_dtypes.bfloat16)
    <n x T>                 one-dimensional numpy array: bool for i1, unsigned for other integers up to 64 bits
                            (the next numpy width), objects (Python ints) above, uint64 for pointers
    [n x T], { ... }        tuple
    a target's registers    array of bytes, of a shape that the target defines
    token                   `tlx.evaluate.tensors.TensorValue`

Undefined values (`undef`, `poison`, uninitialised memory) have all bits set: floats are NaN, which stands out in
results. In memory, values are little-endian and vectors are packed, as on x86-64, whatever the module's data layout
says; but a bitcast of a big-endian module numbers lanes as such a machine does, from the most significant bits.

Conversions round once, while numpy rounds some wide numbers to half or bfloat in two steps. Here a number is first
rounded *to odd* (if it is not exact, to the neighbour whose last bit is one) in a format at least two bits wider;
rounding that to the target format is then the same as rounding once (Boldo and Melquiond, "Emulation of FMA and
correctly rounded sums", 2008).
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from math import prod
from typing import Any, Final, TypeAlias

import numpy as np

from tlx.diagnostics import EvaluationError
from tlx.evaluate.memory import Layout
from tlx.intrinsics.numpy_types import Array, bfloat_dtype
from tlx.ir.types import ArrayType, FloatType, IntType, PointerType, StructType, Type, VectorType, scalar_of

RuntimeValue: TypeAlias = Any
DType: TypeAlias = np.dtype[Any]


BFLOAT16: DType = bfloat_dtype("V2")
"""bfloat; without ml_dtypes an opaque type of two bytes."""
_FLOAT_DTYPES: dict[str, DType] = {
    "half": np.dtype(np.float16),
    "bfloat": BFLOAT16,
    "float": np.dtype(np.float32),
    "double": np.dtype(np.float64),
}


@cache
def element_dtype(type_: Type) -> DType:
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
    if isinstance(type_, FloatType) and type_.name in _FLOAT_DTYPES:
        return _FLOAT_DTYPES[type_.name]
    raise EvaluationError(f"the evaluator has no values of type {type_}")


def smallest_normal(dtype: DType) -> float:
    """The smallest positive normal number of a floating-point type."""
    return 2.0**-126 if dtype == BFLOAT16 else float(np.finfo(dtype).tiny)


def is_native(type_: Type) -> bool:
    """Whether elements of a scalar type have the same bytes in memory as in numpy."""
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
    bits, dtype = width_of(type_), element_dtype(type_)
    if numbers.dtype == dtype and bits in (8, 16, 32, 64):
        return numbers
    if bits == 1:
        return (numbers & 1).astype(np.bool_)
    if "O" in (dtype.kind, numbers.dtype.kind):
        return np.array([int(n) & ((1 << bits) - 1) for n in numbers], dtype)
    cast = numbers.astype(dtype)
    return cast if bits == 8 * dtype.itemsize else cast & dtype.type((1 << bits) - 1)


def vector(elements: Sequence[RuntimeValue], type_: Type) -> Array:
    """A vector value from scalar values; `type_` is the element type."""
    return np.array(elements, element_dtype(type_))


def scalar(element: RuntimeValue, type_: Type) -> RuntimeValue:
    """A scalar value from an element of a vector."""
    return element if isinstance(type_, FloatType) else int(element)


def splat(element: RuntimeValue, type_: VectorType) -> Array:
    """A vector of equal elements."""
    return np.full(type_.count, element, element_dtype(type_.element))


def zero(type_: Type, layout: Layout) -> RuntimeValue:
    """The zero of a type."""
    return filled(type_, layout, 0)


def undefined(type_: Type, layout: Layout) -> RuntimeValue:
    """The value of `undef` and `poison`: all bits set, or the layout's undefined byte."""
    return filled(type_, layout, layout.undefined)


def filled(type_: Type, layout: Layout, byte: int) -> RuntimeValue:
    """The value whose bytes are all `byte` (0 or 255).

    A scalable vector has its least length: only `llvm.vector.insert` takes one of unknown length, and replaces all of
    it.

    Raises:
        EvaluationError: The evaluator has no values of the type.
    """
    type_ = layout.resolve(type_)
    if isinstance(type_, (IntType, PointerType)):
        return (1 << width_of(type_)) - 1 if byte else 0
    if isinstance(type_, FloatType):
        return np.frombuffer(bytes([byte] * element_dtype(type_).itemsize), element_dtype(type_))[0]
    if isinstance(type_, VectorType):
        return splat(filled(type_.element, layout, byte), type_)
    if isinstance(type_, ArrayType):
        return (filled(type_.element, layout, byte),) * type_.count
    if isinstance(type_, StructType):
        return tuple(filled(e, layout, byte) for e in type_.elements)
    if (shape := layout.register_shape(type_)) is not None:
        return np.full(shape, byte, np.uint8)
    raise EvaluationError(f"the evaluator has no values of type {type_}")


def to_odd(rounded: Array, error: Array) -> Array:
    """Turn numbers rounded to nearest into numbers rounded to odd.

    Args:
        rounded: The numbers, float32 or float64.
        error: The exact numbers minus the rounded ones; only its sign matters.
    """
    bits = rounded.view(f"u{rounded.dtype.itemsize}")
    move = np.isfinite(error) & (error != 0) & ((bits & 1) == 0)
    move |= np.isinf(rounded) & np.isinf(error) & (np.sign(error) != np.sign(rounded))
    towards = np.copysign(np.asarray(np.inf, rounded.dtype), error).astype(rounded.dtype)
    return np.where(move, np.nextafter(rounded, towards), rounded)


def to_float(numbers: Array, dtype: DType) -> Array:
    """Floating-point numbers in another floating-point type, rounded to nearest even once."""
    if dtype == BFLOAT16 and numbers.dtype == np.float64:
        single = numbers.astype(np.float32)
        return to_odd(single, numbers - single.astype(np.float64)).astype(BFLOAT16)
    return numbers.astype(dtype)


def from_integers(numbers: Array, dtype: DType) -> Array:
    """Integers of any width (objects: Python ints) as floating-point numbers, rounded once."""
    if numbers.dtype.kind == "O":
        return (
            to_float(np.array([_odd_double(int(n)) for n in numbers], np.float64), dtype)
            if (dtype != np.float64)
            else np.array([float(int(n)) for n in numbers], np.float64)
        )
    if numbers.dtype.itemsize <= 4:
        return to_float(numbers.astype(np.float64), dtype)
    if dtype.itemsize >= 4:
        return numbers.astype(dtype)
    return to_float(np.array([_odd_double(int(n)) for n in numbers], np.float64), dtype)


def _odd_double(number: int) -> float:
    """An integer rounded to odd: the last bit kept is set if any dropped bit is."""
    drop = max(abs(number).bit_length() - 53, 0)
    if drop == 0:
        return float(number)
    significand = abs(number) >> drop
    significand |= (abs(number) & ((1 << drop) - 1)) != 0
    try:
        return float((significand << drop) * (1 if number > 0 else -1))
    except OverflowError:
        return np.inf if number > 0 else -np.inf


_UNPACK: Final = {1: "<B", 2: "<H", 4: "<I", 8: "<Q"}


@dataclass(frozen=True, slots=True)
class Codec:
    """Conversion of values of one type to and from bytes.

    Attributes:
        size: Number of bytes.
        decode: (buffer, offset) -> value.
        encode: value -> bytes.
    """

    size: int
    decode: Callable[[memoryview, int], RuntimeValue]
    encode: Callable[[RuntimeValue], bytes]


class Codecs:
    """The codec of each type of a module, made when first used."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self._codecs: dict[Type, Codec] = {}

    def __getitem__(self, type_: Type) -> Codec:
        codec = self._codecs.get(type_)
        if codec is None:
            codec = self._codecs[type_] = self._make(self.layout.resolve(type_))
        return codec

    def bitcast(self, source: Type, to: Type) -> Callable[[RuntimeValue], RuntimeValue]:
        """The function of a bitcast between types of one size: a load of the bytes that a store would write."""
        encode, decode = self[source].encode, self[to].decode

        def little_endian(value: RuntimeValue) -> RuntimeValue:
            return decode(memoryview(encode(value)), 0)

        def big_endian(value: RuntimeValue) -> RuntimeValue:
            # The bytes of a big-endian machine in reverse: the last lane comes first.
            lanes = value[::-1] if isinstance(source, VectorType) else value
            result = little_endian(lanes)
            return result[::-1] if isinstance(to, VectorType) else result

        return big_endian if self.layout.is_big_endian else little_endian

    def _make(self, type_: Type) -> Codec:
        if isinstance(type_, (IntType, PointerType)):
            return _integer_codec(width_of(type_))
        if isinstance(type_, FloatType):
            return _float_codec(element_dtype(type_))
        if isinstance(type_, VectorType) and not type_.scalable:
            return _vector_codec(type_)
        if isinstance(type_, ArrayType):
            step = self.layout.size(type_.element)
            return self._sequence([self[type_.element]] * type_.count, range(0, step * type_.count, step or 1), type_)
        if isinstance(type_, StructType):
            return self._sequence([self[e] for e in type_.elements], self.layout.fields(type_)[0], type_)
        if (shape := self.layout.register_shape(type_)) is not None:
            return _register_codec(shape)
        raise EvaluationError(f"values of type {type_} cannot be stored in memory")

    def _sequence(self, codecs: list[Codec], offsets: range | tuple[int, ...], type_: Type) -> Codec:
        size = self.layout.size(type_)
        fields = list(zip(codecs, offsets, strict=False))

        def decode(buffer: memoryview, at: int) -> RuntimeValue:
            return tuple(codec.decode(buffer, at + offset) for codec, offset in fields)

        def encode(value: RuntimeValue) -> bytes:
            data = bytearray(size)
            for (codec, offset), element in zip(fields, value, strict=True):
                data[offset : offset + codec.size] = codec.encode(element)
            return bytes(data)

        return Codec(size, decode, encode)


def _integer_codec(bits: int) -> Codec:
    size = (bits + 7) // 8
    mask = (1 << bits) - 1
    if bits in (8, 16, 32, 64):
        packer = struct.Struct(_UNPACK[size])
        unpack = packer.unpack_from
        return Codec(size, lambda buffer, at: unpack(buffer, at)[0], packer.pack)

    def decode(buffer: memoryview, at: int) -> int:
        return int.from_bytes(buffer[at : at + size], "little") & mask

    return Codec(size, decode, lambda value: value.to_bytes(size, "little"))


def _float_codec(dtype: DType) -> Codec:
    def decode(buffer: memoryview, at: int) -> RuntimeValue:
        return np.frombuffer(buffer, dtype, 1, at)[0]

    return Codec(dtype.itemsize, decode, lambda value: value.tobytes())


def _vector_codec(type_: VectorType) -> Codec:
    element, count = type_.element, type_.count
    dtype = element_dtype(element)
    if is_native(element):

        def decode(buffer: memoryview, at: int) -> Array:
            return np.frombuffer(buffer, dtype, count, at).copy()

        return Codec(count * dtype.itemsize, decode, lambda value: value.tobytes())
    if dtype == np.bool_:
        return _bit_codec(count)
    return _packed_codec(count, element)


def _bit_codec(count: int) -> Codec:
    size = (count + 7) // 8

    def decode(buffer: memoryview, at: int) -> Array:
        data = np.frombuffer(buffer, np.uint8, size, at)
        return np.unpackbits(data, count=count, bitorder="little").astype(np.bool_)

    return Codec(size, decode, lambda value: np.packbits(value, bitorder="little").tobytes())


def _packed_codec(count: int, element: Type) -> Codec:
    """Elements of odd width: element k at bits `k*N` to `k*N + N-1` of one wide integer."""
    bits = width_of(element)
    size = (count * bits + 7) // 8
    mask = (1 << bits) - 1

    def decode(buffer: memoryview, at: int) -> Array:
        whole = int.from_bytes(buffer[at : at + size], "little")
        return vector([(whole >> k * bits) & mask for k in range(count)], element)

    def encode(value: Array) -> bytes:
        return sum(int(n) << k * bits for k, n in enumerate(value)).to_bytes(size, "little")

    return Codec(size, decode, encode)


def _register_codec(shape: tuple[int, ...]) -> Codec:
    size = prod(shape)

    def decode(buffer: memoryview, at: int) -> Array:
        return np.frombuffer(buffer, np.uint8, size, at).reshape(shape).copy()

    return Codec(size, decode, lambda value: value.tobytes())
