"""Elements of memrefs at uniform indices: one, or a row of neighbours as a vector."""

from __future__ import annotations

from collections.abc import Sequence

from tlx.frontends.tensor_language.emit.arithmetic import Parts
from tlx.frontends.tensor_language.emit.conversions import convert
from tlx.frontends.tensor_language.emit.emitter import Emitter
from tlx.frontends.tensor_language.emit.numbers import to_memory, widened
from tlx.frontends.tensor_language.emit.values import Memref, memory_type
from tlx.frontends.tensor_language.emit.views import moved, plus, times
from tlx.frontends.tensor_language.types import ScalarType
from tlx.ir.types import I64, VectorType
from tlx.ir.values import Constant, Value, const_int, const_vector


def address_of(e: Emitter, memref: Memref, indices: Sequence[Value]) -> Value:
    """Address of an element."""
    offset: Value = const_int(I64, 0)
    for index, stride in zip(indices, memref.stride, strict=True):
        offset = plus(e, offset, times(e, index, stride))
    return moved(e, memref, offset)


def read(e: Emitter, memref: Memref, indices: Sequence[Value], type_: ScalarType, lanes: int = 1) -> Parts:
    """The element at some indices, in a type; more lanes are the elements behind it in memory."""
    element = memref.type.element
    memory = memory_type(element)
    loaded = VectorType(lanes, memory) if lanes > 1 else memory
    parts = part_addresses(e, address_of(e, memref, indices), element)
    values = tuple(widened(e, e.b.load(loaded, part, element.part.size), element) for part in parts)
    return convert(e, values, element, type_)


def write(e: Emitter, parts: Parts, type_: ScalarType, memref: Memref, indices: Sequence[Value]) -> None:
    """Write an element computed in a type, or several neighbours."""
    element = memref.type.element
    values = convert(e, parts, type_, element)
    addresses = part_addresses(e, address_of(e, memref, indices), element)
    for value, part in zip(values, addresses, strict=True):
        e.b.store(to_memory(e, value, element), part, element.part.size)


def part_addresses(e: Emitter, address: Value, type_: ScalarType) -> tuple[Value, ...]:
    """Where the parts of an element are."""
    return (address,) if type_.kind != "complex" else (address, e.b.gep(memory_type(type_), address, 1))


def repeated(e: Emitter, value: Value, lanes: int) -> Value:
    """A number as a vector of as many lanes, or itself where it is one lane."""
    if lanes == 1:
        return value
    return const_vector([value] * lanes) if isinstance(value, Constant) else e.b.splat(value, lanes)
