"""Memory: addresses, loads and stores of elements, members of groups, views, and local memory.

An access takes the cheapest form that its addresses allow:

    all uniform                      one scalar load; one scalar store
    lane i at base + i elements      one vector load or store, masked where not every work-item is active
    anything else                    gather and scatter

Complex elements are two adjacent parts: uniform ones take two loads, varying ones two gathers.

    subview %A[%i:4, %j]     pointer + i*S1 + j*S2,  shape (4),       stride (S1)
    expand  %A[0->2 x 8]     pointer,                shape (2, 8, …), stride (S1, 2*S1, …)
    fuse    %A[0,1]          pointer,                shape (s1*s2, …), stride (S1, …)

One thread runs a work-group, so local memory is on the stack or the heap of that thread.

LLVM 22 writes four bytes for a masked store of truncated lanes whose mask is known to have one lane only:

    %t = trunc <16 x i32> %v to <16 x i8>                                               vmovss %xmm0, (%rdi)
    call void @llvm.masked.store.v16i8.p0(<16 x i8> %t, ptr %p, i32 1, <i1 1, i1 0, ...>)

So masks of elements below 32 bits are combined by `and` with a true value that LLVM cannot fold: it is loaded from
volatile memory.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from tlx.frontends.tensor_language.emit import threads
from tlx.frontends.tensor_language.emit.arithmetic.scalars import (
    from_memory,
    index,
    is_int,
    splat,
    to_memory,
    unify_values,
    vary,
)
from tlx.frontends.tensor_language.emit.emitter import (
    Emitter,
    Group,
    LinearLanes,
    Memref,
    Number,
    SharedMemory,
    memory_type,
)
from tlx.frontends.tensor_language.emit.subgroups import trap_if_null
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
from tlx.ir.types import I1, I8, I32, I64, VOID, ArrayType, Type, VectorType, bits_of
from tlx.ir.values import ConstInt, Keyword, Value, const_int, const_ints


def offset_product(e: Emitter, a: Value, b: Value) -> Value:
    """The product of extents, uniform or varying."""
    a, b = unify_values(e, a, b)
    return e.b.mul(a, b)


def offset_sum(e: Emitter, a: Value, b: Value) -> Value:
    """The sum of offsets, uniform or varying."""
    if is_int(a, 0):
        return b
    if is_int(b, 0):
        return a
    a, b = unify_values(e, a, b)
    return e.b.add(a, b)


def offset_of(e: Emitter, memref: Memref, indices: Sequence[Value]) -> Value:
    """`i1*S1 + i2*S2 + ...` in elements; a vector if anything varies."""
    offset: Value = const_int(I64, 0)
    for position, stride in zip(indices, memref.stride, strict=True):
        offset = offset_sum(e, offset, offset_product(e, position, stride))
    return offset


def address_of(e: Emitter, memref: Memref, indices: Sequence[Value]) -> Value:
    """Address of an element, or one address for each lane."""
    return pointer_at(e, memref, offset_of(e, memref, indices))


def pointer_at(e: Emitter, memref: Memref, offset: Value) -> Value:
    """The address at an offset, in elements, from the first one of a memref."""
    if is_int(offset, 0):
        return memref.pointer
    element = memory_type(memref.type.element)
    if memref.type.element.kind == "complex":
        offset = offset_product(e, offset, const_int(I64, 2))
    if e.mask is not None or isinstance(offset.type, VectorType) or isinstance(memref.pointer.type, VectorType):
        return unbounded_gep(e, element, memref.pointer, offset)  # inactive lanes may be out of bounds
    return e.b.gep(element, memref.pointer, offset)


def unbounded_gep(e: Emitter, element: Type, pointer: Value, offset: Value) -> Value:
    """`getelementptr` without `inbounds`, for one or several addresses that may be out of bounds."""
    lanes = offset.type if isinstance(offset.type, VectorType) else pointer.type
    type_ = e.b.pointer(element)
    result = VectorType(lanes.count, type_) if isinstance(lanes, VectorType) else type_
    body = f"getelementptr {element}, {pointer.typed}, {offset.typed}"
    return e.b.emit("getelementptr", result, [pointer, offset], body, source_type=element).value


def part_addresses(e: Emitter, address: Value, type_: ScalarType) -> tuple[Value, ...]:
    """Addresses of the parts of an element; the two parts of a complex number are adjacent."""
    if type_.kind != "complex":
        return (address,)
    element = memory_type(type_)
    if isinstance(address.type, VectorType):
        return address, unbounded_gep(e, element, address, const_int(I64, 1))
    return address, e.b.gep(element, address, 1)


def null_like(pointer: Value) -> Value:
    """A null pointer, or a vector of them, like a pointer or a vector of pointers."""
    return Keyword(pointer.type, "zeroinitializer" if isinstance(pointer.type, VectorType) else "null")


def masked_load(e: Emitter, type_: VectorType, address: Value, align: int, mask: Value | None) -> Value:
    """Load a vector; zeros where the mask is off (None: all lanes are on)."""
    return e.b.load(type_, address, align) if mask is None else e.b.masked_load(type_, address, align, mask)


def masked_store(e: Emitter, value: Value, address: Value, align: int, mask: Value | None) -> None:
    """Store the lanes of a vector for which the mask is on (None: all lanes)."""
    if mask is None:
        e.b.store(value, address, align)
        return
    type_ = value.type
    assert isinstance(type_, VectorType)
    if bits_of(type_.element) < 32:
        mask = e.b.binary("and", mask, e.b.splat(_truth(e), type_.count))
    e.b.masked_store(value, address, align, mask)


def gather(e: Emitter, element: Type, addresses: Value, align: int, mask: Value | None) -> Value:
    """Load an element for each lane; zero where the mask is off (None: all lanes are on)."""
    assert isinstance(addresses.type, VectorType)
    if e.item is not None:
        return threads.load_where(e, element, addresses, align, mask)
    vector = VectorType(addresses.type.count, element)
    args = [addresses, const_int(I32, align), _lanes(mask, vector), Keyword(vector, "zeroinitializer")]
    return e.b.call_intrinsic("llvm.masked.gather", [vector, addresses.type], vector, args)


def scatter(e: Emitter, value: Value, addresses: Value, align: int, mask: Value | None) -> None:
    """Store a value for each lane whose mask is on (None: all lanes); the lowest lane first."""
    assert isinstance(value.type, VectorType)
    if e.item is not None:
        threads.store_where(e, value, addresses, align, mask)
        return
    args = [value, addresses, const_int(I32, align), _lanes(mask, value.type)]
    e.b.call_intrinsic("llvm.masked.scatter", [value.type, addresses.type], VOID, args)


def _lanes(mask: Value | None, vector: VectorType) -> Value:
    return mask if mask is not None else const_ints(I1, [1] * vector.count)


def _truth(e: Emitter) -> Value:
    """`true`, loaded from volatile memory so that LLVM cannot fold it."""
    place = e.b.alloca(I8, "true", 1)
    one = const_int(I8, 1)
    written = e.b.emit("store", VOID, [one, place], f"store volatile {one.typed}, {place.typed}, align 1")
    read = e.b.emit("load", I8, [place], f"load volatile i8, {place.typed}, align 1")
    for access in (written, read):
        access.flags, access.align = ("volatile",), 1
    return e.b.icmp("ne", read.value, 0)


def load(e: Emitter, i: Load) -> None:
    """`%r = load %memref_or_group[%i,...] : type`."""
    if isinstance(e.scope[i.source.text], Group):
        e.bind(i.result, _member(e, e.group(i.source), e.number(i.indices[0])))
        return
    e.bind(i.result, _load_element(e, e.memref(i.source), i.indices))


def store(e: Emitter, i: Store) -> None:
    """`store %value, %memref[%i,...]`."""
    _store_element(e, e.number(i.value), e.memref(i.destination), i.indices)


def _member(e: Emitter, group: Group, position: Number) -> Memref:
    """The memref at a position of a group: `pointers[i] + offset`, with the extents of that member; null stays null."""
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
class ElementAddresses:
    """The addresses of an element access for all work-items.

    Attributes:
        address: One address, or one for each lane; that of lane 0 if `step` is set.
        step: Distance in elements from lane to lane; 0 if all lanes access one element, None if it is irregular.
    """

    address: Value
    step: int | None


def _place(e: Emitter, memref: Memref, indices: tuple[Name, ...]) -> ElementAddresses:
    """The addresses of the element at some indices."""
    offset: Value = const_int(I64, 0)
    step: int | None = 0
    numbers = e.numbers(indices)
    if not memref.is_varying and all(not n.is_varying or n.linear is not None for n in numbers):
        for number, stride in zip(numbers, memref.stride, strict=True):
            linear = number.linear or LinearLanes(number.value, 0)
            offset = offset_sum(e, offset, offset_product(e, linear.base, stride))
            step = _added(step, linear.step, stride)
    is_irregular = step is None or memref.is_varying or any(n.is_varying and n.linear is None for n in numbers)
    if is_irregular or (e.item is not None and any(n.is_varying for n in numbers)):
        return ElementAddresses(element_address(e, memref, indices), None)
    return ElementAddresses(pointer_at(e, memref, offset), step)


def element_address(e: Emitter, memref: Memref, indices: tuple[Name, ...]) -> Value:
    """Address of an element, or one address for each lane."""
    return address_of(e, memref, [number.value for number in e.numbers(indices)])


def _load_element(e: Emitter, memref: Memref, indices: tuple[Name, ...]) -> Number:
    """Load the element at some indices."""
    type_ = memref.type.element
    where = _place(e, memref, indices)
    if type_.kind == "complex" and where.step:
        where = ElementAddresses(element_address(e, memref, indices), None)
    parts = (_load(e, ElementAddresses(part, where.step), type_) for part in part_addresses(e, where.address, type_))
    return Number(type_, tuple(from_memory(e, part, type_) for part in parts))


def read_parts(e: Emitter, address: Value, type_: ScalarType) -> tuple[Value, ...]:
    """The parts of the element at an address, in the register type."""
    places = part_addresses(e, address, type_)
    return tuple(from_memory(e, e.b.load(memory_type(type_), place, type_.part.size), type_) for place in places)


def write_parts(e: Emitter, address: Value, type_: ScalarType, parts: tuple[Value, ...]) -> None:
    """Store the parts of an element."""
    for place, part in zip(part_addresses(e, address, type_), parts, strict=True):
        e.b.store(to_memory(e, part, type_), place, type_.part.size)


def _store_element(e: Emitter, number: Number, memref: Memref, indices: tuple[Name, ...]) -> None:
    """Store an element; if several work-items store to one element, the last one wins."""
    type_ = memref.type.element
    where = _place(e, memref, indices)
    shared = where.step == 0 and number.is_varying
    if shared and e.item is not None:
        number, shared = replace(number, parts=tuple(threads.last_active(e, part) for part in number.parts)), False
    if shared or (type_.kind == "complex" and where.step):
        where = ElementAddresses(splat(e, element_address(e, memref, indices)), None)
    if where.step != 0 or isinstance(where.address.type, VectorType):
        number = vary(e, number)
    for value, part in zip(number.parts, part_addresses(e, where.address, type_), strict=True):
        _store(e, to_memory(e, value, type_), ElementAddresses(part, where.step), type_)


def _added(step: int | None, lane: int, stride: Value) -> int | None:
    """The step with `lane * stride` added to it."""
    if step is None or lane == 0:
        return step
    return step + lane * stride.value if isinstance(stride, ConstInt) else None


def _load(e: Emitter, addresses: ElementAddresses, type_: ScalarType) -> Value:
    memory, align = memory_type(type_), type_.part.size
    if isinstance(addresses.address.type, VectorType):
        return gather(e, memory, addresses.address, align, e.mask)
    if addresses.step == 0:
        return e.b.load(memory, addresses.address, align)
    if addresses.step != 1:
        return gather(e, memory, _lane_addresses(e, addresses, memory), align, e.mask)
    loaded = masked_load(e, VectorType(e.lanes, memory), addresses.address, align, e.mask)
    return loaded if e.mask is None else _frozen(e, loaded)


def _frozen(e: Emitter, loaded: Value) -> Value:
    """`freeze`, which prevents LLVM from merging a masked load with a `select` on the same mask.

    LLVM 22 merges the two at the place of the `select`, which may be after stores that follow the load. The masks of
    other masked loads (matrices, remainders of BLAS loops) are internal to the emitter and never used by a `select`.
    """
    return e.b.value("freeze", loaded.type, [loaded], f"freeze {loaded.typed}")


def _store(e: Emitter, value: Value, addresses: ElementAddresses, type_: ScalarType) -> None:
    align = type_.part.size
    if isinstance(addresses.address.type, VectorType):
        scatter(e, value, addresses.address, align, e.mask)
    elif addresses.step == 0 and e.item is not None:
        threads.once(e, [], lambda: _stored(e, value, addresses.address, align))
    elif addresses.step == 0:
        e.b.store(value, addresses.address, align)
    elif addresses.step == 1:
        masked_store(e, value, addresses.address, align, e.mask)
    else:
        scatter(e, value, _lane_addresses(e, addresses, memory_type(type_)), align, e.mask)


def _stored(e: Emitter, value: Value, address: Value, align: int) -> Sequence[Value]:
    e.b.store(value, address, align)
    return ()


def _lane_addresses(e: Emitter, addresses: ElementAddresses, element: Type) -> Value:
    """The address of each lane."""
    assert addresses.step is not None
    offsets = const_ints(I64, [lane * addresses.step for lane in range(e.lanes)])
    return unbounded_gep(e, element, addresses.address, offsets)


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


def size(e: Emitter, i: Size) -> None:
    """`%r = size %memref[mode] : index`."""
    operand = e.scope[i.operand.text]
    extent = operand.size if isinstance(operand, Group) else e.memref(i.operand).shape[i.mode]
    assert extent is not None, "version 1 never asks for the size of a group"
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
    moves = [
        _multiple_of(_extent(e, slice_.offset), step) for slice_, step in zip(i.slices, operand.stride, strict=True)
    ]
    alignment = math.gcd(operand.alignment, *(move * type_.element.size for move in moves))
    pointer = pointer_at(e, operand, offset)
    e.bind(i.result, _memref(type_, pointer, shape, stride, alignment))


def _multiple_of(offset: Value, step: Value) -> int:
    """What `offset * step` is a multiple of, as far as that is known."""
    return math.prod(value.value if isinstance(value, ConstInt) else 1 for value in (offset, step))


def expand(e: Emitter, i: Expand) -> None:
    """`%r = expand %memref[mode->4 x %n] : memref-type`."""
    operand = e.memref(i.operand)
    sizes = [_extent(e, entry) for entry in i.shape]
    steps = [operand.stride[i.mode]]
    for entry in sizes[:-1]:
        steps.append(offset_product(e, steps[-1], entry))
    shape = [*operand.shape[: i.mode], *sizes, *operand.shape[i.mode + 1 :]]
    stride = [*operand.stride[: i.mode], *steps, *operand.stride[i.mode + 1 :]]
    e.bind(i.result, _memref(_memref_type(i), operand.pointer, shape, stride, operand.alignment))


def fuse(e: Emitter, i: Fuse) -> None:
    """`%r = fuse %memref[first,last] : memref-type`."""
    operand = e.memref(i.operand)
    whole: Value = const_int(I64, 1)
    for entry in operand.shape[i.first : i.last + 1]:
        whole = offset_product(e, whole, entry)
    shape = [*operand.shape[: i.first], whole, *operand.shape[i.last + 1 :]]
    stride = [*operand.stride[: i.first + 1], *operand.stride[i.last + 1 :]]
    e.bind(i.result, _memref(_memref_type(i), operand.pointer, shape, stride, operand.alignment))


def _memref(type_: MemrefType, pointer: Value, shape: list[Value], stride: list[Value], alignment: int) -> Memref:
    """A memref; static extents are constants."""
    return Memref(
        type_, pointer, _with_static_extents(type_.shape, shape), _with_static_extents(type_.stride, stride), alignment
    )


def _with_static_extents(extents: tuple[Extent, ...], values: list[Value]) -> tuple[Value, ...]:
    """Values, replaced by constants where a type has static extents."""
    pairs = zip(extents, values, strict=True)
    return tuple(value if entry is None else const_int(I64, entry) for entry, value in pairs)


def _extent(e: Emitter, entry: int | Name) -> Value:
    """An offset or size as i64."""
    return const_int(I64, entry) if isinstance(entry, int) else e.number(entry).value


def _memref_type(i: Subview | Expand | Fuse) -> MemrefType:
    assert isinstance(i.type, MemrefType)
    return i.type


STACK_LIMIT: Final = 64 << 10  # bytes of one alloca; other threads than the main one may have small stacks


def alloca(e: Emitter, i: Alloca) -> None:
    """`%r = alloca : memref-type`."""
    type_ = i.type
    assert isinstance(type_, MemrefType)
    assert type_.is_static
    elements = _span(type_)
    size = elements * type_.element.size
    alignment = _alignment(i)
    if e.item is not None:
        pointer = _in_shared_memory(e, e.item.shared, size, alignment, zeroed=id(i) in e.first_writes.zeroed)
        _bind_local(e, i, type_, e.b.retype(pointer, memory_type(type_.element)), alignment)
        return
    large = size > STACK_LIMIT
    pointer = _on_heap(e, type_, size, alignment) if large else _on_stack(e, type_, elements, alignment)
    if id(i) in e.first_writes.zeroed:
        e.b.memset(pointer, 0, size)
    _bind_local(e, i, type_, pointer, alignment)


def _bind_local(e: Emitter, i: Alloca, type_: MemrefType, pointer: Value, alignment: int) -> None:
    shape = tuple(const_int(I64, s) for s in type_.shape if s is not None)
    stride = tuple(const_int(I64, s) for s in type_.stride if s is not None)
    e.bind(i.result, Memref(type_, pointer, shape, stride, alignment))


def _in_shared_memory(e: Emitter, shared: SharedMemory, size: int, alignment: int, *, zeroed: bool) -> Value:
    """Memory of the work-group, which is free again at the end of the region."""
    before = shared.used
    offset = shared.allocate(size, alignment)
    e.at_region_end.append(lambda: setattr(shared, "used", before))
    pointer = e.b.gep(I8, shared.base, offset)
    if zeroed:
        threads.barrier(e)
        threads.for_each_thread(
            e, const_int(I64, size), lambda k: e.b.store(const_int(I8, 0), e.b.gep(I8, pointer, k), 1)
        )
        threads.barrier(e)
    return pointer


def lifetime_stop(_e: Emitter, _i: LifetimeStop) -> None:
    """`lifetime_stop %memref`: nothing; stack memory is freed with the function, heap memory with the region."""


def _span(type_: MemrefType) -> int:
    """Elements from the first to the last one of a static memref, both included."""
    pairs = zip(type_.shape, type_.stride, strict=True)
    return 1 + sum((shape - 1) * stride for shape, stride in pairs if shape is not None and stride is not None)


def _alignment(i: Alloca) -> int:
    """The alignment in bytes: `alignment=`, but at least the alignment of all local memory."""
    attribute = i.attributes.get("alignment")
    value = None if attribute is None else attribute.value
    return max(LOCAL_ALIGNMENT, value) if isinstance(value, int) else LOCAL_ALIGNMENT


def _on_stack(e: Emitter, type_: MemrefType, elements: int, alignment: int) -> Value:
    element = memory_type(type_.element)
    parts = elements * (2 if type_.element.kind == "complex" else 1)
    pointer = e.b.alloca(ArrayType(parts, element), "local", alignment)
    return e.b.retype(pointer, element)


def _on_heap(e: Emitter, type_: MemrefType, size: int, alignment: int) -> Value:
    """`aligned_alloc` of a multiple of the alignment; traps if it fails; freed at the end of the region."""
    rounded = -(-size // alignment) * alignment
    bytes_pointer = e.b.pointer(I8)
    args = [const_int(I64, alignment), const_int(I64, rounded)]
    pointer = e.b.call_named("aligned_alloc", bytes_pointer, args, "local").value
    trap_if_null(e, pointer)
    e.at_region_end.append(lambda: _free(e, pointer))
    return e.b.retype(pointer, memory_type(type_.element))


def _free(e: Emitter, pointer: Value) -> None:
    e.b.call_named("free", VOID, [pointer])
