"""Memrefs as pointer, shape and stride: parameters' members, sizes, and the views subview, expand and fuse.

subview %A[%i:4, %j]     pointer + i*S1 + j*S2,  shape (4),       stride (S1)
expand  %A[0->2 x 8]     pointer,                shape (2, 8, …), stride (S1, 2*S1, …)
fuse    %A[0,1]          pointer,                shape (s1*s2, …), stride (S1, …)
"""

from __future__ import annotations

from typing import Final

from tlx.frontends.tensor_language.ast.base import Name
from tlx.frontends.tensor_language.ast.mixed import Associated, Expand, Fuse, Size, Subview
from tlx.frontends.tensor_language.emit.emitter import Emitter
from tlx.frontends.tensor_language.emit.numbers import index, values_together
from tlx.frontends.tensor_language.emit.values import Group, Memref, Number, memory_type
from tlx.frontends.tensor_language.types import BOOL, Extent, MemrefType
from tlx.ir.types import I64, Type, VectorType
from tlx.ir.values import ConstInt, Keyword, Value, const_int


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
    e.bind(i.result, Number(BOOL, (e.b.icmp("ne", operand.pointer, _null(operand.pointer)),)))


def is_null(e: Emitter, pointer: Value) -> Value:
    """Whether a pointer, or each of a vector of them, is null."""
    return e.b.icmp("eq", pointer, _null(pointer))


def _null(pointer: Value) -> Value:
    return Keyword(pointer.type, "zeroinitializer" if isinstance(pointer.type, VectorType) else "null")


def subview(e: Emitter, i: Subview) -> None:
    """`%r = subview %memref[%offset:%size, ...] : memref-type`."""
    operand = e.memref(i.operand)
    type_ = _memref_type(i)
    offset: Value = const_int(I64, 0)
    shape: list[Value] = []
    stride: list[Value] = []
    for slice_, step in zip(i.slices, operand.stride, strict=True):
        offset = plus(e, offset, times(e, _extent(e, slice_.offset), step))
        if slice_.size is not None and slice_.size != 0:
            shape.append(_extent(e, slice_.size))
            stride.append(step)
    aligned = isinstance(offset, ConstInt) and (offset.value * type_.element.size) % operand.alignment == 0
    alignment = operand.alignment if aligned else type_.element.part.size
    pointer = moved(e, operand, offset)
    e.bind(i.result, _viewed(type_, pointer, shape, stride, alignment))


def expand(e: Emitter, i: Expand) -> None:
    """`%r = expand %memref[mode->4 x %n] : memref-type`."""
    operand = e.memref(i.operand)
    sizes = [_extent(e, entry) for entry in i.shape]
    steps = [operand.stride[i.mode]]
    for entry in sizes[:-1]:
        steps.append(times(e, steps[-1], entry))
    shape = [*operand.shape[: i.mode], *sizes, *operand.shape[i.mode + 1 :]]
    stride = [*operand.stride[: i.mode], *steps, *operand.stride[i.mode + 1 :]]
    e.bind(i.result, _viewed(_memref_type(i), operand.pointer, shape, stride, operand.alignment))


def fuse(e: Emitter, i: Fuse) -> None:
    """`%r = fuse %memref[first,last] : memref-type`."""
    operand = e.memref(i.operand)
    whole: Value = const_int(I64, 1)
    for entry in operand.shape[i.first : i.last + 1]:
        whole = times(e, whole, entry)
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


def moved(e: Emitter, memref: Memref, offset: Value) -> Value:
    """The address a number of elements behind a memref's first one."""
    if isinstance(offset, ConstInt) and offset.value == 0:
        return memref.pointer
    element = memory_type(memref.type.element)
    if memref.type.element.kind == "complex":
        offset = times(e, offset, const_int(I64, 2))
    if isinstance(offset.type, VectorType) or isinstance(memref.pointer.type, VectorType):
        return offset_pointer(e, memref.pointer, offset, element)
    if e.mask is not None:  # lane 0 may be none of those that are active, and its address outside
        body = f"getelementptr {element}, {memref.pointer.typed}, {offset.typed}"
        type_ = memref.pointer.type
        return e.b.emit("getelementptr", type_, [memref.pointer, offset], body, source_type=element).value
    return e.b.gep(element, memref.pointer, offset)


def offset_pointer(e: Emitter, pointer: Value, offset: Value, element: Type) -> Value:
    """A vector of addresses, from a pointer or a vector of pointers and offsets in `element`s."""
    type_ = VectorType(e.lanes, e.b.pointer(element))
    body = f"getelementptr {element}, {pointer.typed}, {offset.typed}"
    return e.b.emit("getelementptr", type_, [pointer, offset], body, source_type=element).value


def times(e: Emitter, a: Value, b: Value) -> Value:
    """A product of extents, uniform or varying."""
    a, b = values_together(e, a, b)
    return e.b.mul(a, b)


def plus(e: Emitter, a: Value, b: Value) -> Value:
    """A sum of offsets, uniform or varying."""
    if isinstance(a, ConstInt) and a.value == 0:
        return b
    if isinstance(b, ConstInt) and b.value == 0:
        return a
    a, b = values_together(e, a, b)
    return e.b.add(a, b)


def _memref_type(i: Subview | Expand | Fuse) -> MemrefType:
    assert isinstance(i.type, MemrefType)
    return i.type


RULES: Final = {Size: size, Associated: associated, Subview: subview, Expand: expand, Fuse: fuse}
