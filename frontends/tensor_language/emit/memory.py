"""Loads and stores of elements, members of groups, views, and local memory on the stack or the heap.

Memory is accessed in the cheapest way that the addresses allow:

    all uniform                      one scalar load; a store under a mask where a work-item is active
    lane i at base + i elements      one vector load or store, masked where not every work-item is active
    anything else                    gather and scatter

Complex elements are two adjacent parts: uniform ones two loads, varying ones two gathers.

subview %A[%i:4, %j]     pointer + i*S1 + j*S2,  shape (4),       stride (S1)
expand  %A[0->2 x 8]     pointer,                shape (2, 8, …), stride (S1, 2*S1, …)
fuse    %A[0,1]          pointer,                shape (s1*s2, …), stride (S1, …)

A work-group is run by one thread, so its local memory is the thread's.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from tlx.frontends.tensor_language.emit.addresses import (
    address_of,
    gather,
    masked_load,
    masked_store,
    null_like,
    offset_product,
    offset_sum,
    part_addresses,
    pointer_at,
    scatter,
    unbounded_gep,
)
from tlx.frontends.tensor_language.emit.emitter import Emitter
from tlx.frontends.tensor_language.emit.masks import trap_if_null
from tlx.frontends.tensor_language.emit.numbers import from_memory, index, is_int, splat, to_memory, vary
from tlx.frontends.tensor_language.emit.values import Group, Linear, Memref, Number, memory_type
from tlx.frontends.tensor_language.operations.memory import (
    Alloca,
    Associated,
    Expand,
    Fuse,
    LifetimeStop,
    Load,
    Size,
    Store,
    Subview,
)
from tlx.frontends.tensor_language.syntax.nodes import Name
from tlx.frontends.tensor_language.types import BOOL, LOCAL_ALIGNMENT, Extent, MemrefType, ScalarType
from tlx.ir.types import I8, I64, VOID, ArrayType, Type, VectorType
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
    at = e.b.select(is_null, pointer, pointer_at(e, plain, group.offset))
    return replace(plain, pointer=at, alignment=type_.element.part.size)


@dataclass(frozen=True, slots=True)
class ElementPlace:
    """Where elements are, for all work-items.

    Attributes:
        address: One address, or one each lane; where `step` is set that of lane 0.
        step: Distance in elements from lane to lane; 0 where all lanes see one element, None where it is not even.
    """

    address: Value
    step: int | None


def _place(e: Emitter, memref: Memref, indices: tuple[Name, ...]) -> ElementPlace:
    """Where the element at an index list is."""
    offset: Value = const_int(I64, 0)
    step: int | None = 0
    numbers = e.numbers(indices)
    if not memref.is_varying and all(not n.is_varying or n.linear is not None for n in numbers):
        for number, stride in zip(numbers, memref.stride, strict=True):
            linear = number.linear or Linear(number.value, 0)
            offset = offset_sum(e, offset, offset_product(e, linear.base, stride))
            step = _added(step, linear.step, stride)
    if step is None or memref.is_varying or any(n.is_varying and n.linear is None for n in numbers):
        return ElementPlace(element_address(e, memref, indices), None)
    return ElementPlace(pointer_at(e, memref, offset), step)


def element_address(e: Emitter, memref: Memref, indices: tuple[Name, ...]) -> Value:
    """Address of an element: one, or one each lane."""
    return address_of(e, memref, [number.value for number in e.numbers(indices)])


def _load_element(e: Emitter, memref: Memref, indices: tuple[Name, ...]) -> Number:
    """The element at an index list."""
    type_ = memref.type.element
    where = _place(e, memref, indices)
    if type_.kind == "complex" and where.step:
        where = ElementPlace(element_address(e, memref, indices), None)
    parts = (_load(e, ElementPlace(part, where.step), type_) for part in part_addresses(e, where.address, type_))
    return Number(type_, tuple(from_memory(e, part, type_) for part in parts))


def _store_element(e: Emitter, number: Number, memref: Memref, indices: tuple[Name, ...]) -> None:
    """Write an element; of several work-items that write one element, the last one's value stays."""
    type_ = memref.type.element
    where = _place(e, memref, indices)
    shared = where.step == 0 and number.is_varying
    if shared or (type_.kind == "complex" and where.step):
        where = ElementPlace(splat(e, element_address(e, memref, indices)), None)
    if where.step != 0 or isinstance(where.address.type, VectorType):
        number = vary(e, number)
    for value, part in zip(number.parts, part_addresses(e, where.address, type_), strict=True):
        _store(e, to_memory(e, value, type_), ElementPlace(part, where.step), type_)


def _added(step: int | None, lane: int, stride: Value) -> int | None:
    """The step with `lane * stride` added to it."""
    if step is None or lane == 0:
        return step
    return step + lane * stride.value if isinstance(stride, ConstInt) else None


def _load(e: Emitter, where: ElementPlace, type_: ScalarType) -> Value:
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


def _store(e: Emitter, value: Value, where: ElementPlace, type_: ScalarType) -> None:
    align = type_.part.size
    if isinstance(where.address.type, VectorType):
        scatter(e, value, where.address, align, e.mask)
    elif where.step == 0:
        e.b.store(value, where.address, align)
    elif where.step == 1:
        masked_store(e, value, where.address, align, e.mask)
    else:
        scatter(e, value, _stepped(e, where, memory_type(type_)), align, e.mask)


def _stepped(e: Emitter, where: ElementPlace, element: Type) -> Value:
    """The address of each lane."""
    assert where.step is not None
    offsets = const_ints(I64, [lane * where.step for lane in range(e.lanes)])
    return unbounded_gep(e, element, where.address, offsets)


def _member_extent(e: Emitter, array: Value | None, position: Number, known: int | None) -> Value:
    if known is not None:
        return const_int(I64, known)
    assert array is not None
    return _entry(e, array, position.value, I64)


def _entry(e: Emitter, array: Value, position: Value, type_: Type) -> Value:
    """An entry of an array of pointers or of i64."""
    if isinstance(position.type, VectorType) or isinstance(array.type, VectorType):
        return gather(e, type_, unbounded_gep(e, type_, array, position), 8, e.mask)
    return e.b.load(type_, e.b.gep(type_, array, position), 8)


ACCESS_RULES: Final = {Load: load, Store: store}


def size(e: Emitter, i: Size) -> None:
    """`%r = size %memref[mode] : index`."""
    operand = e.scope[i.operand.text]
    extent = operand.size if isinstance(operand, Group) else e.memref(i.operand).shape[i.mode]
    assert extent is not None, "the first version asks no group for its size"
    e.bind(i.result, index(extent))


def associated(e: Emitter, i: Associated) -> None:
    """`%r = associated %memref_or_group : bool`."""
    operand = e.scope[i.operand.text]
    assert isinstance(operand, (Memref, Group))
    e.bind(i.result, Number(BOOL, (e.b.icmp("ne", operand.pointer, null_like(operand.pointer)),)))


def subview(e: Emitter, i: Subview) -> None:
    """`%r = subview %memref[%offset:%size, ...] : memref-type`."""
    operand = e.memref(i.operand)
    type_ = _memref_type(i)
    offset: Value = const_int(I64, 0)
    shape: list[Value] = []
    stride: list[Value] = []
    for slice_, step in zip(i.slices, operand.stride, strict=True):
        offset = offset_sum(e, offset, offset_product(e, _extent(e, slice_.offset), step))
        if slice_.size is not None and slice_.size != 0:
            shape.append(_extent(e, slice_.size))
            stride.append(step)
    aligned = isinstance(offset, ConstInt) and (offset.value * type_.element.size) % operand.alignment == 0
    alignment = operand.alignment if aligned else type_.element.part.size
    pointer = pointer_at(e, operand, offset)
    e.bind(i.result, _viewed(type_, pointer, shape, stride, alignment))


def expand(e: Emitter, i: Expand) -> None:
    """`%r = expand %memref[mode->4 x %n] : memref-type`."""
    operand = e.memref(i.operand)
    sizes = [_extent(e, entry) for entry in i.shape]
    steps = [operand.stride[i.mode]]
    for entry in sizes[:-1]:
        steps.append(offset_product(e, steps[-1], entry))
    shape = [*operand.shape[: i.mode], *sizes, *operand.shape[i.mode + 1 :]]
    stride = [*operand.stride[: i.mode], *steps, *operand.stride[i.mode + 1 :]]
    e.bind(i.result, _viewed(_memref_type(i), operand.pointer, shape, stride, operand.alignment))


def fuse(e: Emitter, i: Fuse) -> None:
    """`%r = fuse %memref[first,last] : memref-type`."""
    operand = e.memref(i.operand)
    whole: Value = const_int(I64, 1)
    for entry in operand.shape[i.first : i.last + 1]:
        whole = offset_product(e, whole, entry)
    shape = [*operand.shape[: i.first], whole, *operand.shape[i.last + 1 :]]
    stride = [*operand.stride[: i.first + 1], *operand.stride[i.last + 1 :]]
    e.bind(i.result, _viewed(_memref_type(i), operand.pointer, shape, stride, operand.alignment))


def _viewed(type_: MemrefType, pointer: Value, shape: list[Value], stride: list[Value], alignment: int) -> Memref:
    """A memref; extents that its type knows are constants."""
    return Memref(type_, pointer, _known(type_.shape, shape), _known(type_.stride, stride), alignment)


def _known(extents: tuple[Extent, ...], values: list[Value]) -> tuple[Value, ...]:
    """Values, with constants where a type tells them."""
    pairs = zip(extents, values, strict=True)
    return tuple(value if entry is None else const_int(I64, entry) for entry, value in pairs)


def _extent(e: Emitter, entry: int | Name) -> Value:
    """An offset or size as i64."""
    return const_int(I64, entry) if isinstance(entry, int) else e.number(entry).value


def _memref_type(i: Subview | Expand | Fuse) -> MemrefType:
    assert isinstance(i.type, MemrefType)
    return i.type


VIEW_RULES: Final = {Size: size, Associated: associated, Subview: subview, Expand: expand, Fuse: fuse}
STACK_LIMIT: Final = 64 << 10  # bytes of one alloca; threads other than the first may have small stacks


def alloca(e: Emitter, i: Alloca) -> None:
    """`%r = alloca : memref-type`."""
    type_ = i.type
    assert isinstance(type_, MemrefType)
    assert type_.is_static
    elements = _span(type_)
    size = elements * type_.element.size
    alignment = _alignment(i)
    large = size > STACK_LIMIT
    pointer = _on_heap(e, type_, size, alignment) if large else _on_stack(e, type_, elements, alignment)
    if id(i) in e.first_writes.zeroed:
        e.b.memset(pointer, 0, size)
    shape = tuple(const_int(I64, s) for s in type_.shape if s is not None)
    stride = tuple(const_int(I64, s) for s in type_.stride if s is not None)
    e.bind(i.result, Memref(type_, pointer, shape, stride, alignment))


def lifetime_stop(_e: Emitter, _i: LifetimeStop) -> None:
    """`lifetime_stop %memref`: stack memory goes with the function, heap memory with the region."""


def _span(type_: MemrefType) -> int:
    """Elements from the first to the last one of a static memref, both included."""
    pairs = zip(type_.shape, type_.stride, strict=True)
    return 1 + sum((shape - 1) * stride for shape, stride in pairs if shape is not None and stride is not None)


def _alignment(i: Alloca) -> int:
    """Bytes: as asked for by `alignment=`, and never less than what all local memory has."""
    asked = i.attributes.get("alignment")
    return max(LOCAL_ALIGNMENT, asked.value) if asked is not None and isinstance(asked.value, int) else LOCAL_ALIGNMENT


def _on_stack(e: Emitter, type_: MemrefType, elements: int, alignment: int) -> Value:
    element = memory_type(type_.element)
    parts = elements * (2 if type_.element.kind == "complex" else 1)
    pointer = e.b.alloca(ArrayType(parts, element), "local", alignment)
    return e.b.retype(pointer, element)


def _on_heap(e: Emitter, type_: MemrefType, size: int, alignment: int) -> Value:
    """`aligned_alloc`, which wants a multiple of the alignment; a trap where memory is short; freed with the region."""
    rounded = -(-size // alignment) * alignment
    bytes_pointer = e.b.pointer(I8)
    args = [const_int(I64, alignment), const_int(I64, rounded)]
    pointer = e.b.call_named("aligned_alloc", bytes_pointer, args, "local").value
    trap_if_null(e, pointer)
    e.at_region_end.append(lambda: _free(e, pointer))
    return e.b.retype(pointer, memory_type(type_.element))


def _free(e: Emitter, pointer: Value) -> None:
    e.b.call_named("free", VOID, [pointer])


ALLOCATION_RULES: Final = {Alloca: alloca, LifetimeStop: lifetime_stop}
