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
from tlx.ir.types import FloatType, IntType, Type
from tlx.numpy_types import dtype_of as logical_dtype
from tlx.types import TensorType


@dataclass(frozen=True, slots=True, eq=False)
class TensorValue:
    """What a token stands for while the program runs."""

    type: TensorType
    array: Array


def from_vector(type_: TensorType, flat: Array) -> TensorValue:
    """The tensor in a flattened vector."""
    data = tuple(slice(extent) for extent in type_.data_shape)
    signed_flat = flat.view(logical_dtype(type_.element))
    return TensorValue(type_, _to_logical(type_, signed_flat.reshape(type_.shape)[data]))


def to_vector(type_: TensorType, logical: Array) -> Array:
    """The flattened vector of a tensor, padding zero."""
    data = tuple(slice(extent) for extent in type_.data_shape)
    full = np.zeros(type_.shape, logical_dtype(type_.element))
    full[data] = _to_memory(type_, logical)
    return full.reshape(-1).view(dtype_of(type_.element))


def scalar_array(type_: Type, value: Value) -> Array:
    """A scalar value as an array without dimensions, of the dtype logical arrays have."""
    number = signed(value, type_.bits) if isinstance(type_, IntType) and type_.bits > 1 else value
    return np.array(number, dtype_of(type_) if isinstance(type_, FloatType) else logical_dtype(type_))


def _to_logical(type_: TensorType, in_memory_order: Array) -> Array:
    return in_memory_order.transpose([type_.position(d) for d in range(type_.rank)])


def _to_memory(type_: TensorType, logical: Array) -> Array:
    return logical.transpose(type_.layout)


# Memory --------------------------------------------------------------------------------------------------------------


def read(memory: Memory, type_: TensorType, address: int, pitches: Sequence[int]) -> TensorValue:
    """`llvm.tensor.load`: reads data positions only; elements of i1 take a byte each."""
    size = _span(type_, pitches)
    region = memory.region(address, size, _access("load", type_, size))
    return TensorValue(type_, _to_logical(type_, _window(type_, region, address, pitches).copy()))


def write(memory: Memory, tensor: TensorValue, address: int, pitches: Sequence[int]) -> None:
    """`llvm.tensor.store`: writes data positions only."""
    size = _span(tensor.type, pitches)
    region = memory.writable(address, size, _access("store", tensor.type, size))
    window = _window(tensor.type, region, address, pitches)
    window[...] = _to_memory(tensor.type, tensor.array)


def _access(what: str, type_: TensorType, size: int) -> str:
    return f"tensor {what} of {type_} (from first to last element {size} bytes)"


def _span(type_: TensorType, pitches: Sequence[int]) -> int:
    """Bytes from the first to behind the last data element."""
    steps = type_.strides(pitches)
    last = sum((extent - 1) * step for extent, step in zip(type_.data_shape, steps, strict=True))
    return (last + 1) * logical_dtype(type_.element).itemsize


def _window(type_: TensorType, region: Region, address: int, pitches: Sequence[int]) -> Array:
    """The data positions of a tensor in a region, in memory order; dimension k strides over its pitch."""
    dtype = logical_dtype(type_.element)
    count = _span(type_, pitches) // dtype.itemsize
    flat = np.frombuffer(region.data, dtype, count, address - region.base)
    steps = [step * dtype.itemsize for step in type_.strides(pitches)]
    return np.lib.stride_tricks.as_strided(flat, type_.data_shape, steps)
