"""Addresses of elements: offsets as sums of products of indices and strides, uniform or a lane each work-item."""

from __future__ import annotations

from collections.abc import Sequence

from tlx.frontends.tensor_language.emit.emitter import Emitter
from tlx.frontends.tensor_language.emit.numbers import is_int, values_together
from tlx.frontends.tensor_language.emit.values import Memref, memory_type
from tlx.frontends.tensor_language.types import ScalarType
from tlx.ir.types import I64, Type, VectorType
from tlx.ir.values import Keyword, Value, const_int


def times(e: Emitter, a: Value, b: Value) -> Value:
    """A product of extents, uniform or varying."""
    a, b = values_together(e, a, b)
    return e.b.mul(a, b)


def plus(e: Emitter, a: Value, b: Value) -> Value:
    """A sum of offsets, uniform or varying."""
    if is_int(a, 0):
        return b
    if is_int(b, 0):
        return a
    a, b = values_together(e, a, b)
    return e.b.add(a, b)


def offset_of(e: Emitter, memref: Memref, indices: Sequence[Value]) -> Value:
    """`i1*S1 + i2*S2 + ...` in elements, a lane each item where anything varies."""
    offset: Value = const_int(I64, 0)
    for index, stride in zip(indices, memref.stride, strict=True):
        offset = plus(e, offset, times(e, index, stride))
    return offset


def address_of(e: Emitter, memref: Memref, indices: Sequence[Value]) -> Value:
    """Address of an element: one, or one each lane."""
    return moved(e, memref, offset_of(e, memref, indices))


def moved(e: Emitter, memref: Memref, offset: Value) -> Value:
    """The address a number of elements behind a memref's first one."""
    if is_int(offset, 0):
        return memref.pointer
    element = memory_type(memref.type.element)
    if memref.type.element.kind == "complex":
        offset = times(e, offset, const_int(I64, 2))
    if e.mask is not None or isinstance(offset.type, VectorType) or isinstance(memref.pointer.type, VectorType):
        return anywhere(e, element, memref.pointer, offset)  # lanes that are not active may be outside
    return e.b.gep(element, memref.pointer, offset)


def anywhere(e: Emitter, element: Type, pointer: Value, offset: Value) -> Value:
    """`getelementptr` without `inbounds`: of one address or several, which may lie outside of what they point into."""
    lanes = offset.type if isinstance(offset.type, VectorType) else pointer.type
    type_ = e.b.pointer(element)
    result = VectorType(lanes.count, type_) if isinstance(lanes, VectorType) else type_
    body = f"getelementptr {element}, {pointer.typed}, {offset.typed}"
    return e.b.emit("getelementptr", result, [pointer, offset], body, source_type=element).value


def part_addresses(e: Emitter, address: Value, type_: ScalarType) -> tuple[Value, ...]:
    """Addresses of the parts of an element; those of complex ones are adjacent."""
    if type_.kind != "complex":
        return (address,)
    element = memory_type(type_)
    if isinstance(address.type, VectorType):
        return address, anywhere(e, element, address, const_int(I64, 1))
    return address, e.b.gep(element, address, 1)


def null_like(pointer: Value) -> Value:
    """A null pointer, or a vector of as many as there are pointers."""
    return Keyword(pointer.type, "zeroinitializer" if isinstance(pointer.type, VectorType) else "null")
