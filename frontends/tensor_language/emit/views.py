"""Sizes of memrefs and groups, whether they are there, and the views `subview`, `expand` and `fuse`.

subview %A[%i:4, %j]     pointer + i*S1 + j*S2,  shape (4),       stride (S1)
expand  %A[0->2 x 8]     pointer,                shape (2, 8, …), stride (S1, 2*S1, …)
fuse    %A[0,1]          pointer,                shape (s1*s2, …), stride (S1, …)
"""

from __future__ import annotations

from typing import Final

from tlx.frontends.tensor_language.ast.base import Name
from tlx.frontends.tensor_language.ast.mixed import Associated, Expand, Fuse, Size, Subview
from tlx.frontends.tensor_language.emit.addresses import moved, null_like, plus, times
from tlx.frontends.tensor_language.emit.emitter import Emitter
from tlx.frontends.tensor_language.emit.numbers import index
from tlx.frontends.tensor_language.emit.values import Group, Memref, Number
from tlx.frontends.tensor_language.types import BOOL, Extent, MemrefType
from tlx.ir.types import I64
from tlx.ir.values import ConstInt, Value, const_int


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


def _memref_type(i: Subview | Expand | Fuse) -> MemrefType:
    assert isinstance(i.type, MemrefType)
    return i.type


RULES: Final = {Size: size, Associated: associated, Subview: subview, Expand: expand, Fuse: fuse}
