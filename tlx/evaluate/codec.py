"""Values to bytes and back, as x86-64 lays them out (little endian, vectors packed)."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

from tlx.diagnostics import EvaluationError
from tlx.evaluate.layout import Layout
from tlx.evaluate.values import Array, DType, Value, dtype_of, is_native, vector, width_of
from tlx.ir.types import (
    X86_AMX,
    ArrayType,
    FloatType,
    IntType,
    PointerType,
    StructType,
    Type,
    VectorType,
)

_UNPACK: Final = {1: "<B", 2: "<H", 4: "<I", 8: "<Q"}


@dataclass(frozen=True, slots=True)
class Codec:
    """How values of one type lie in memory.

    Attributes:
        size: Bytes a load or store touches.
        decode: (buffer, offset) -> value.
        encode: value -> bytes.
    """

    size: int
    decode: Callable[[memoryview, int], Value]
    encode: Callable[[Value], bytes]


class Codecs:
    """The codec of each type of a module, made when first used."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self._known: dict[Type, Codec] = {}

    def __getitem__(self, type_: Type) -> Codec:
        codec = self._known.get(type_)
        if codec is None:
            codec = self._known[type_] = self._make(self.layout.resolve(type_))
        return codec

    def _make(self, type_: Type) -> Codec:
        if isinstance(type_, (IntType, PointerType)):
            return _integer(width_of(type_))
        if isinstance(type_, FloatType):
            return _float(dtype_of(type_))
        if isinstance(type_, VectorType) and not type_.scalable:
            return _vector(type_)
        if isinstance(type_, ArrayType):
            step = self.layout.size(type_.element)
            return self._sequence([self[type_.element]] * type_.count, range(0, step * type_.count, step or 1), type_)
        if isinstance(type_, StructType):
            return self._sequence([self[e] for e in type_.elements], self.layout.fields(type_)[0], type_)
        if type_ == X86_AMX:
            return Codec(1024, _tile, lambda value: value.tobytes())
        raise EvaluationError(f"values of type {type_} do not lie in memory")

    def _sequence(self, parts: list[Codec], offsets: range | tuple[int, ...], type_: Type) -> Codec:
        size = self.layout.size(type_)
        fields = list(zip(parts, offsets, strict=False))

        def decode(buffer: memoryview, at: int) -> Value:
            return tuple(part.decode(buffer, at + offset) for part, offset in fields)

        def encode(value: Value) -> bytes:
            data = bytearray(size)
            for (part, offset), element in zip(fields, value, strict=True):
                data[offset : offset + part.size] = part.encode(element)
            return bytes(data)

        return Codec(size, decode, encode)


def _integer(bits: int) -> Codec:
    size = (bits + 7) // 8
    mask = (1 << bits) - 1
    if bits in (8, 16, 32, 64):
        packer = struct.Struct(_UNPACK[size])
        unpack = packer.unpack_from
        return Codec(size, lambda buffer, at: unpack(buffer, at)[0], packer.pack)

    def decode(buffer: memoryview, at: int) -> int:
        return int.from_bytes(buffer[at : at + size], "little") & mask

    return Codec(size, decode, lambda value: value.to_bytes(size, "little"))


def _float(dtype: DType) -> Codec:
    def decode(buffer: memoryview, at: int) -> Value:
        return np.frombuffer(buffer, dtype, 1, at)[0]

    return Codec(dtype.itemsize, decode, lambda value: value.tobytes())


def _vector(type_: VectorType) -> Codec:
    element, count = type_.element, type_.count
    dtype = dtype_of(element)
    if is_native(element):

        def decode(buffer: memoryview, at: int) -> Array:
            return np.frombuffer(buffer, dtype, count, at).copy()

        return Codec(count * dtype.itemsize, decode, lambda value: value.tobytes())
    if dtype == np.bool_:
        return _bits(count)
    return _packed(count, element)


def _bits(count: int) -> Codec:
    size = (count + 7) // 8

    def decode(buffer: memoryview, at: int) -> Array:
        data = np.frombuffer(buffer, np.uint8, size, at)
        return np.unpackbits(data, count=count, bitorder="little").astype(np.bool_)

    return Codec(size, decode, lambda value: np.packbits(value, bitorder="little").tobytes())


def _packed(count: int, element: Type) -> Codec:
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


def _tile(buffer: memoryview, at: int) -> Array:
    return np.frombuffer(buffer, np.uint8, 1024, at).reshape(16, 64).copy()
