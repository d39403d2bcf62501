"""Loads and stores of elements, and members of groups.

Memory is accessed in the cheapest way that the addresses allow:

    all uniform                      one scalar load; a store under a mask where a work-item is active
    lane i at base + i elements      one vector load or store, masked where not every work-item is active
    anything else                    gather and scatter

Complex elements are two adjacent parts: uniform ones two loads, varying ones two gathers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from tlx.frontends.tensor_language.ast.base import Name
from tlx.frontends.tensor_language.ast.mixed import Load, Store
from tlx.frontends.tensor_language.emit.addresses import (
    address_of,
    anywhere,
    moved,
    null_like,
    part_addresses,
    plus,
    times,
)
from tlx.frontends.tensor_language.emit.emitter import Emitter
from tlx.frontends.tensor_language.emit.masked_access import gather, masked_load, masked_store, scatter
from tlx.frontends.tensor_language.emit.numbers import is_int, splat, to_memory, vary, widened
from tlx.frontends.tensor_language.emit.values import Group, Linear, Memref, Number, memory_type
from tlx.frontends.tensor_language.types import ScalarType
from tlx.ir.types import I64, Type, VectorType
from tlx.ir.values import ConstInt, Value, const_int, const_ints


def load(e: Emitter, i: Load) -> None:
    """`%r = load %memref_or_group[%i,...] : type`."""
    if isinstance(e.scope[i.source.text], Group):
        e.bind(i.result, _member(e, e.group(i.source), e.number(i.indices[0])))
        return
    e.bind(i.result, _load_element(e, e.memref(i.source), i.indices))


def store(e: Emitter, i: Store) -> None:
    """`store %value, %memref[%i,...]`."""
    _store_element(e, e.number(i.value), e.memref(i.target), i.indices)


def _member(e: Emitter, group: Group, position: Number) -> Memref:
    """The memref at a position of a group: `pointers[i] + offset`, with the extents of that member.

    A null pointer stays one.
    """
    type_ = group.type.memref
    pointee = e.b.pointer(memory_type(type_.element))
    pointer = _entry(e, group.pointer, position.value, pointee)
    shape = [_member_extent(e, s, position, k) for s, k in zip(group.shapes, type_.shape, strict=True)]
    stride = [_member_extent(e, s, position, k) for s, k in zip(group.strides, type_.stride, strict=True)]
    plain = Memref(type_, pointer, tuple(shape), tuple(stride), group.alignment)
    if is_int(group.offset, 0):
        return plain
    is_null = e.b.icmp("eq", pointer, null_like(pointer))
    at = e.b.select(is_null, pointer, moved(e, plain, group.offset))
    return replace(plain, pointer=at, alignment=type_.element.part.size)


@dataclass(frozen=True, slots=True)
class Place:
    """Where elements are, for all work-items.

    Attributes:
        address: One address, or one each lane; where `step` is set that of lane 0.
        step: Distance in elements from lane to lane; 0 where all lanes see one element, None where it is not even.
    """

    address: Value
    step: int | None


def _place(e: Emitter, memref: Memref, indices: tuple[Name, ...]) -> Place:
    """Where the element at an index list is."""
    offset: Value = const_int(I64, 0)
    step: int | None = 0
    numbers = e.numbers(indices)
    if not memref.is_varying and all(not n.is_varying or n.linear is not None for n in numbers):
        for number, stride in zip(numbers, memref.stride, strict=True):
            linear = number.linear or Linear(number.value, 0)
            offset = plus(e, offset, times(e, linear.base, stride))
            step = _added(step, linear.step, stride)
    if step is None or memref.is_varying or any(n.is_varying and n.linear is None for n in numbers):
        return Place(element_address(e, memref, indices), None)
    return Place(moved(e, memref, offset), step)


def element_address(e: Emitter, memref: Memref, indices: tuple[Name, ...]) -> Value:
    """Address of an element: one, or one each lane."""
    return address_of(e, memref, [number.value for number in e.numbers(indices)])


def _load_element(e: Emitter, memref: Memref, indices: tuple[Name, ...]) -> Number:
    """The element at an index list."""
    type_ = memref.type.element
    where = _place(e, memref, indices)
    if type_.kind == "complex" and where.step:
        where = Place(element_address(e, memref, indices), None)
    parts = (_load(e, Place(part, where.step), type_) for part in part_addresses(e, where.address, type_))
    return Number(type_, tuple(widened(e, part, type_) for part in parts))


def _store_element(e: Emitter, number: Number, memref: Memref, indices: tuple[Name, ...]) -> None:
    """Write an element; of several work-items that write one element, the last one's value stays."""
    type_ = memref.type.element
    where = _place(e, memref, indices)
    shared = where.step == 0 and number.is_varying
    if shared or (type_.kind == "complex" and where.step):
        where = Place(splat(e, element_address(e, memref, indices)), None)
    if where.step != 0 or isinstance(where.address.type, VectorType):
        number = vary(e, number)
    for value, part in zip(number.parts, part_addresses(e, where.address, type_), strict=True):
        _store(e, to_memory(e, value, type_), Place(part, where.step), type_)


def _added(step: int | None, lane: int, stride: Value) -> int | None:
    """The step with `lane * stride` added to it."""
    if step is None or lane == 0:
        return step
    return step + lane * stride.value if isinstance(stride, ConstInt) else None


def _load(e: Emitter, where: Place, type_: ScalarType) -> Value:
    memory, align = memory_type(type_), type_.part.size
    if isinstance(where.address.type, VectorType):
        return gather(e, memory, where.address, align, e.mask)
    if where.step == 0:
        return e.b.load(memory, where.address, align)
    if where.step != 1:
        return gather(e, memory, _stepped(e, where, memory), align, e.mask)
    loaded = masked_load(e, VectorType(e.lanes, memory), where.address, align, e.mask)
    return loaded if e.mask is None else _frozen(e, loaded)


def _frozen(e: Emitter, loaded: Value) -> Value:
    """`freeze`, which hides a masked load from a `select` with the same mask.

    LLVM 22 makes one load of the two, where the `select` stands: behind stores that came after the load. Masks of other
    masked loads (of matrices, of the rest of BLAS vectors) are out of the kernel's reach, and so in no `select`.
    """
    return e.b.value("freeze", loaded.type, [loaded], f"freeze {loaded.typed}")


def _store(e: Emitter, value: Value, where: Place, type_: ScalarType) -> None:
    align = type_.part.size
    if isinstance(where.address.type, VectorType):
        scatter(e, value, where.address, align, e.mask)
    elif where.step == 0:
        e.b.store(value, where.address, align)
    elif where.step == 1:
        masked_store(e, value, where.address, align, e.mask)
    else:
        scatter(e, value, _stepped(e, where, memory_type(type_)), align, e.mask)


def _stepped(e: Emitter, where: Place, element: Type) -> Value:
    """The address of each lane."""
    assert where.step is not None
    offsets = const_ints(I64, [lane * where.step for lane in range(e.lanes)])
    return anywhere(e, element, where.address, offsets)


def _member_extent(e: Emitter, array: Value | None, position: Number, known: int | None) -> Value:
    if known is not None:
        return const_int(I64, known)
    assert array is not None
    return _entry(e, array, position.value, I64)


def _entry(e: Emitter, array: Value, position: Value, type_: Type) -> Value:
    """An entry of an array of pointers or of i64."""
    if isinstance(position.type, VectorType) or isinstance(array.type, VectorType):
        return gather(e, type_, anywhere(e, type_, array, position), 8, e.mask)
    return e.b.load(type_, e.b.gep(type_, array, position), 8)


RULES: Final = {Load: load, Store: store}
