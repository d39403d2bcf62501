"""Elements of memrefs at uniform indices: one, or a row of neighbours as a vector, some of which may not be there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from tlx.frontends.tensor_language.emit.addresses import address_of, part_addresses
from tlx.frontends.tensor_language.emit.conversions import convert
from tlx.frontends.tensor_language.emit.emitter import Emitter
from tlx.frontends.tensor_language.emit.masked_access import masked_load, masked_store
from tlx.frontends.tensor_language.emit.numbers import splat, to_memory, widened
from tlx.frontends.tensor_language.emit.values import Memref, Parts, memory_type
from tlx.frontends.tensor_language.types import ScalarType
from tlx.ir.types import I32, VectorType
from tlx.ir.values import Value, const_ints


@dataclass(frozen=True, slots=True)
class Lanes:
    """How many neighbours are worked on at a time.

    Attributes:
        count: Their number; 1 is no vector.
        mask: Which of them there are, None for all.
    """

    count: int = 1
    mask: Value | None = None


ONE: Final = Lanes()


def read(e: Emitter, memref: Memref, indices: Sequence[Value], type_: ScalarType, lanes: Lanes = ONE) -> Parts:
    """The element at some indices, in a type; more lanes are those behind it in memory, zero where masked out."""
    element = memref.type.element
    parts = part_addresses(e, address_of(e, memref, indices), element)
    values = tuple(widened(e, _load(e, element, part, lanes), element) for part in parts)
    return convert(e, values, element, type_)


def write(
    e: Emitter, parts: Parts, type_: ScalarType, memref: Memref, indices: Sequence[Value], lanes: Lanes = ONE
) -> None:
    """Write an element computed in a type, or several neighbours."""
    element = memref.type.element
    values = convert(e, parts, type_, element)
    addresses = part_addresses(e, address_of(e, memref, indices), element)
    for value, part in zip(values, addresses, strict=True):
        stored = to_memory(e, value, element)
        masked_store(e, stored, part, element.part.size, lanes.mask)


def first_lanes(e: Emitter, count: int, number: Value) -> Lanes:
    """As many lanes, of which the first ones are there, a number less than `count` of them."""
    limit = e.b.splat(e.b.cast("trunc", number, I32), count)
    return Lanes(count, e.b.icmp("ult", const_ints(I32, range(count)), limit))


def _load(e: Emitter, type_: ScalarType, address: Value, lanes: Lanes) -> Value:
    memory = memory_type(type_)
    if lanes.count == 1:
        return e.b.load(memory, address, type_.part.size)
    return masked_load(e, VectorType(lanes.count, memory), address, type_.part.size, lanes.mask)


def repeated(e: Emitter, value: Value, lanes: Lanes) -> Value:
    """A number as a vector of as many lanes, or itself where it is one lane."""
    return value if lanes.count == 1 else splat(e, value, lanes.count)
