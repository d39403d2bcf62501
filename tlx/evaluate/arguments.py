"""Passing arguments: numpy arrays and numbers to IR values and back, and copies of `byval` arguments."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeGuard

import numpy as np

from tlx.diagnostics import EvaluationError
from tlx.evaluate.memory import AddressSpace, Layout, MemoryRegion
from tlx.evaluate.values import RuntimeValue, element_dtype, signed, signed_array, width_of
from tlx.intrinsics.numpy_types import Array
from tlx.ir.abi import parse_attributes, pointee_type
from tlx.ir.functions import Function
from tlx.ir.types import ArrayType, FloatType, IntType, PointerType, StructType, Type, VectorType


@dataclass(frozen=True, slots=True)
class ByvalCopy:
    """An argument that the callee gets a copy of.

    Attributes:
        position: Which argument it is.
        size: Its size in bytes.
        room: The same with padding.
        align: Alignment of the copy.
        label: What errors call the copy.
    """

    position: int
    size: int
    room: int
    align: int
    label: str


def byval_copies(layout: Layout, callee: str, parameters: Iterable[tuple[Type, str]]) -> tuple[ByvalCopy, ...]:
    """What must be copied for a call, given the types and attributes of the parameters or arguments."""
    found: list[ByvalCopy] = []
    for position, (type_, text) in enumerate(parameters):
        pointee = pointee_type(type_, text, "byval")
        if pointee is not None:
            align = next((a.number for a in parse_attributes(text) if a.name == "align"), layout.align(pointee))
            label = f"argument {position} of @{callee}, which is passed by value"
            found.append(ByvalCopy(position, layout.store_size(pointee), layout.size(pointee), align, label))
    return tuple(found)


def pass_byval_copies(
    memory: AddressSpace, stack: list[MemoryRegion], made: Sequence[ByvalCopy], arguments: Sequence[RuntimeValue]
) -> list[RuntimeValue]:
    """The arguments with copies in the places of some; the copies are on a stack."""
    passed = list(arguments)
    for copy in made:
        data = memory.read(passed[copy.position], copy.size, f"copy of {copy.label},")
        region = memory.allocate(copy.room, copy.label, copy.align)
        region.data[: copy.size] = data
        stack.append(region)
        passed[copy.position] = region.base
    return passed


_ALIGNMENT = re.compile(r"\balign (\d+)")


@dataclass
class _SharedRange:
    """A range of this process's memory that arrays share."""

    low: int
    high: int
    align: int
    arrays: list[Array] = field(default_factory=list[Array])
    labels: list[str] = field(default_factory=list[str])


class ArrayMapping:
    """Gives numpy arrays addresses in a machine's memory.

    Arrays that overlap lie in one region, so they alias as they do in numpy. A region's address is a multiple of 16
    (or of what a parameter's `align` asks for) and of no more.
    """

    def __init__(self, memory: AddressSpace) -> None:
        self._memory = memory
        self._blocks: list[_SharedRange] = []
        self.regions: list[MemoryRegion] = []

    def add(self, array: Array, label: str, align: int = 16) -> None:
        """Note an array that will be mapped."""
        low, high = np.lib.array_utils.byte_bounds(array) if array.size else (_address(array), _address(array))
        block = _SharedRange(low, high, max(align, 16), [array], [label])
        for other in [b for b in self._blocks if b.low < high and low < b.high]:
            self._blocks.remove(other)
            block.low, block.high = min(block.low, other.low), max(block.high, other.high)
            block.align = max(block.align, other.align)
            block.arrays += other.arrays
            block.labels += other.labels
        self._blocks.append(block)

    def place(self) -> None:
        """Make the regions."""
        for block in self._blocks:
            size = block.high - block.low
            data = memoryview((ctypes.c_ubyte * size).from_address(block.low)).cast("B")
            skew = (block.low - _owner_address(block.arrays[0])) % (2 * block.align)
            label = " and ".join(block.labels)
            writable = all(a.flags.writeable for a in block.arrays)
            self.regions.append(
                self._memory.add(data, label, block.align, writable=writable, owner=block.arrays, skew=skew)
            )

    def address(self, array: Array) -> int:
        """Where the first element of a mapped array is."""
        at = _address(array)
        for block, region in zip(self._blocks, self.regions, strict=True):
            if any(a is array for a in block.arrays):
                return region.base + at - block.low
        raise EvaluationError("the array was not mapped")

    def release(self) -> None:
        """Unmap everything."""
        for region in self.regions:
            self._memory.release(region, "was an argument of a call that has ended")


def _address(array: Array) -> int:
    return int(array.__array_interface__["data"][0])


def _owner_address(array: Array) -> int:
    """Address of the array that a view looks into."""
    base = array
    while is_array(base.base):
        base = base.base
    return _address(base)


def is_array(value: object) -> TypeGuard[Array]:
    """Whether a Python argument is a numpy array."""
    return isinstance(value, np.ndarray)


def map_arguments(memory: AddressSpace, function: Function, args: tuple[Any, ...]) -> ArrayMapping:
    """Map the arrays among the arguments that go to pointer parameters."""
    mapping = ArrayMapping(memory)
    for parameter, arg in zip(function.arguments, args, strict=True):
        if isinstance(parameter.type, PointerType) and is_array(arg):
            found = _ALIGNMENT.search(parameter.attributes)
            shape = "x".join(map(str, arg.shape))
            label = f"argument %{parameter.name} of @{function.name} ({shape} {arg.dtype})"
            mapping.add(arg, label, int(found[1]) if found else 16)
    mapping.place()
    return mapping


def to_value(type_: Type, arg: Any, mapping: ArrayMapping) -> RuntimeValue:
    """The value of a Python argument for a parameter of some type.

    Raises:
        EvaluationError: The argument does not fit the parameter.
    """
    if isinstance(type_, PointerType):
        return mapping.address(arg) if is_array(arg) else int(arg) & ((1 << 64) - 1)
    if isinstance(type_, IntType):
        return int(arg) & ((1 << type_.bits) - 1)
    if isinstance(type_, FloatType):
        return element_dtype(type_).type(arg)
    if isinstance(type_, VectorType):
        return _vector(type_, np.asarray(arg))
    if isinstance(type_, StructType):
        return tuple(to_value(t, a, mapping) for t, a in zip(type_.elements, arg, strict=True))
    raise EvaluationError(f"cannot pass {type(arg).__name__} as a parameter of type {type_}")


def _vector(type_: VectorType, array: Array) -> Array:
    dtype = element_dtype(type_.element)
    if array.shape != (type_.count,):
        shape = "x".join(map(str, array.shape))
        raise EvaluationError(f"a parameter of type {type_} needs {type_.count} elements, got an array of {shape}")
    if isinstance(type_.element, FloatType) or dtype == np.bool_:
        return array.astype(dtype)
    mask = (1 << width_of(type_)) - 1
    return np.array([int(n) & mask for n in array], dtype)


def to_python(type_: Type, value: RuntimeValue) -> Any:
    """A result for Python: integers signed (i1: bool), also in vectors and structs; pointers as addresses."""
    if isinstance(type_, IntType):
        return bool(value) if type_.bits == 1 else signed(value, type_.bits)
    if isinstance(type_, VectorType) and isinstance(type_.element, IntType) and type_.element.bits > 1:
        return signed_array(value, type_.element.bits)
    if isinstance(type_, StructType):
        return tuple(to_python(t, v) for t, v in zip(type_.elements, value, strict=True))
    if isinstance(type_, ArrayType):
        return tuple(to_python(type_.element, v) for v in value)
    return value
