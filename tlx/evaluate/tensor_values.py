"""Tensors as values: logical arrays, the flattened vectors they come from, and memory.

A token's value is a `TensorValue`: its type, and its logical array (dimension `d` of the array is logical dimension
`d`, data only), in numpy's signed integers, bool for i1.

    flattened vector    -- reshape to `shape`, cut the padding -->    memory order    -- transpose -->    logical
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tlx.evaluate.memory import Memory, Region
from tlx.evaluate.values import Array, Value, dtype_of, signed
from tlx.ir.types import I1, FloatType, IntType, Type
from tlx.numpy_types import dtype_of as logical_dtype
from tlx.types import TensorType


@dataclass(frozen=True, slots=True, eq=False)
class TensorValue:
    """What a token stands for while the program runs."""

    type: TensorType
    array: Array


class Flattened:
    """Tensors of one type in flattened vectors; what depends on the type alone is found once."""

    def __init__(self, type_: TensorType) -> None:
        self._type = type_
        self._data = tuple(slice(extent) for extent in type_.data_shape)
        self._order = [type_.position(d) for d in range(type_.rank)]
        self._logical_dtype = logical_dtype(type_.element)
        self._vector_dtype = dtype_of(type_.element)

    def tensor(self, flat: Array) -> TensorValue:
        """The tensor in a flattened vector."""
        in_memory_order = flat.view(self._logical_dtype).reshape(self._type.shape)[self._data]
        return TensorValue(self._type, in_memory_order.transpose(self._order))

    def vector(self, logical: Array) -> Array:
        """The flattened vector of a tensor, padding zero."""
        full = np.zeros(self._type.shape, self._logical_dtype)
        full[self._data] = logical.transpose(self._type.layout)
        return full.reshape(-1).view(self._vector_dtype)


class InMemory:
    """Tensors of one type in memory with given pitches: `llvm.tensor.load` and `llvm.tensor.store`.

    Only data positions are touched. Elements of i1 take a byte each.

    Args:
        type_: The type.
        pitches: Operand `strides`; empty for dense.
    """

    def __init__(self, type_: TensorType, pitches: Sequence[int]) -> None:
        steps = type_.strides(pitches or None)
        self._type = type_
        self._is_bits = type_.element == I1
        self._dtype = np.dtype(np.uint8) if self._is_bits else logical_dtype(type_.element)
        self._shape = type_.data_shape
        self._steps = [step * self._dtype.itemsize for step in steps]
        self._order = [type_.position(d) for d in range(type_.rank)]
        last = sum((extent - 1) * step for extent, step in zip(self._shape, steps, strict=True))
        self._size = (last + 1) * self._dtype.itemsize
        self._access = f"of {type_} (from first to last element {self._size} bytes)"

    def read(self, memory: Memory, address: int) -> TensorValue:
        """The tensor whose first element is at an address."""
        region = memory.region(address, self._size, f"tensor load {self._access}")
        data = self._window(region, address)
        data = (data & 1).astype(np.bool_) if self._is_bits else data.copy()
        return TensorValue(self._type, data.transpose(self._order))

    def write(self, memory: Memory, tensor: TensorValue, address: int) -> None:
        """Put a tensor to an address."""
        region = memory.writable(address, self._size, f"tensor store {self._access}")
        self._window(region, address)[...] = tensor.array.transpose(self._type.layout)

    def _window(self, region: Region, address: int) -> Array:
        """The data positions in memory order; dimension k strides over its pitch."""
        return np.ndarray(self._shape, self._dtype, region.data, address - region.base, self._steps)


def scalar_array(type_: Type, value: Value) -> Array:
    """A scalar value as an array without dimensions, of the dtype logical arrays have."""
    number = signed(value, type_.bits) if isinstance(type_, IntType) and type_.bits > 1 else value
    return np.array(number, dtype_of(type_) if isinstance(type_, FloatType) else logical_dtype(type_))
