"""Views and accesses: the types of their results, and the sizes that version 1 infers and version 2 wants named.

Rewrite:

    %v = subview %A[%i:?] : memref<f32x16>      ->    %c16 = constant 16 : index
                                                      %rest = sub %c16, %i : index
                                                      %v = subview %A[%i:%rest] : memref<f32x?>

    %v = expand %A[0->4x?] : memref<f32x?>      ->    %extent = size %A[0] : index
                                                      %c4 = constant 4 : index
                                                      %part = div %extent, %c4 : index
                                                      %v = expand %A[0->4 x %part] : memref<f32x4x?>

Where both are known, the size is a number in the view.
"""

from __future__ import annotations

import math
from typing import Final

from tlx.diagnostics import Span
from tlx.frontends.tensor_language.ast import base, mixed
from tlx.frontends.tensor_language.ast.base import Name, TypeRef
from tlx.frontends.tensor_language.types import INDEX, Extent, GroupType, MemrefType
from tlx.frontends.tensor_language.v1 import tree as v1
from tlx.frontends.tensor_language.v1.builder import Builder
from tlx.frontends.tensor_language.v1.spelling import spell
from tlx.frontends.tensor_language.view_types import expanded, fused, sliced


def load(b: Builder, i: v1.Load) -> mixed.Load:
    """`load`: an element of a memref, or a memref of a group."""
    source = b.expect(i.source, i.types[0])
    indices = tuple(map(b.index, i.indices))
    assert isinstance(source, MemrefType | GroupType)
    type_ = source.memref if isinstance(source, GroupType) else source.element
    return mixed.Load(source=i.source, indices=indices, types=(TypeRef(type_),))


def store(b: Builder, i: v1.Store) -> mixed.Store:
    """`store`."""
    b.known(i.value)
    b.expect(i.target, i.types[0])
    return mixed.Store(value=i.value, target=i.target, indices=tuple(map(b.index, i.indices)))


def size(b: Builder, i: v1.Size) -> mixed.Size:
    """`size`."""
    b.expect(i.operand, i.types[0])
    return mixed.Size(operand=i.operand, mode=i.mode, types=(TypeRef(INDEX),))


def fuse(b: Builder, i: v1.Fuse) -> mixed.Fuse | None:
    """`fuse`."""
    source = b.memref(i.operand, i.types[0])
    if not 0 <= i.first < i.last < source.order:
        b.reports.add(
            f"fuse takes two modes in order, below {source.order} for {spell(source)}, got {i.first} and {i.last}",
            i.span,
        )
        return None
    types = (TypeRef(fused(source, i.first, i.last)),)
    return mixed.Fuse(operand=i.operand, first=i.first, last=i.last, types=types)


def subview(b: Builder, i: v1.Subview) -> mixed.Subview | None:
    """`subview`, with the sizes of modes that it leaves out."""
    source = b.memref(i.operand, i.types[0])
    if len(i.slices) != source.order:
        expected = f"{source.order} for {spell(source)}"
        b.reports.add(f"subview takes a slice for each mode, {expected}, got {len(i.slices)}", i.span)
        return None
    slices = tuple(_slice(b, i, source, mode, s) for mode, s in enumerate(i.slices))
    return mixed.Subview(operand=i.operand, slices=slices, types=(TypeRef(sliced(source, slices)),))


def _slice(b: Builder, i: v1.Subview, source: MemrefType, mode: int, written: v1.Slice) -> base.Slice:
    offset = _entry(b, written.offset)
    if written.size is None:
        return base.Slice(offset, None, written.span)
    if not isinstance(written.size, v1.Rest):
        entry = _entry(b, written.size)
        size_ = _positive(b, entry, written.size.span, "the size of a slice") if isinstance(entry, int) else entry
        return base.Slice(offset, size_, written.span)
    extent = source.shape[mode]
    if isinstance(offset, int) and extent is not None:
        left = _positive(b, extent - offset, written.span, f"what is left of {extent} behind {offset}")
        return base.Slice(offset, left, written.span)
    whole = _extent(b, i.operand, mode, extent, i.span)
    if offset == 0:
        return base.Slice(offset, whole, written.span)
    first = b.index(written.offset)
    rest = mixed.ArithBinary(op="sub", lhs=whole, rhs=first, span=written.span)
    return base.Slice(offset, b.value("rest", rest, INDEX), written.span)


def expand(b: Builder, i: v1.Expand) -> mixed.Expand | None:
    """`expand`, with the size that it leaves out."""
    source = b.memref(i.operand, i.types[0])
    if not 0 <= i.mode < source.order:
        b.reports.add(f"expand takes a mode below {source.order} for {spell(source)}, got {i.mode}", i.span)
        return None
    entries = _expand_shape(b, i, source.shape[i.mode])
    if entries is None:
        return None
    types = (TypeRef(expanded(source, i.mode, entries)),)
    return mixed.Expand(operand=i.operand, mode=i.mode, shape=entries, types=types)


def _expand_shape(b: Builder, i: v1.Expand, extent: Extent) -> tuple[int | Name, ...] | None:
    """The shape with the part that is to be inferred, if there is one."""
    rests = [e for e in i.shape if isinstance(e, v1.Rest)]
    if len(rests) > 1:
        b.reports.add("only one '?' can be inferred in an expand shape; name the other sizes", rests[1].span)
        return None
    names = [b.known(e) for e in i.shape if isinstance(e, Name)]
    known = math.prod(e for e in i.shape if isinstance(e, int))
    if not rests:
        return tuple(e for e in i.shape if not isinstance(e, v1.Rest))
    if known <= 0:
        b.reports.add("the sizes of an expand shape are positive where one is to be inferred", rests[0].span)
        return None
    if extent is not None and not names and extent % known:
        b.reports.add(f"the mode's size {extent} is no multiple of {known}, so '?' has no value", rests[0].span)
        return None
    part = _part(b, i, extent, known, names)
    return tuple(part if isinstance(e, v1.Rest) else e for e in i.shape)


def _part(b: Builder, i: v1.Expand, extent: Extent, known: int, names: list[Name]) -> int | Name:
    """The mode's size divided by all other entries."""
    if extent is not None and not names:
        return extent // known
    whole = _extent(b, i.operand, i.mode, extent, i.span)
    factors = ([] if known == 1 else [b.constant(v1.Constant(known, i.span), INDEX)]) + names
    if not factors:
        return whole
    divisor = factors[0]
    for factor in factors[1:]:
        product = mixed.ArithBinary(op="mul", lhs=divisor, rhs=factor, span=i.span)
        divisor = b.value("product", product, INDEX)
    return b.value("part", mixed.ArithBinary(op="div", lhs=whole, rhs=divisor, span=i.span), INDEX)


def _extent(b: Builder, memref: Name, mode: int, extent: Extent, span: Span | None) -> Name:
    """The size of a mode as a value."""
    if extent is not None:
        return b.constant(v1.Constant(extent, span), INDEX)
    return b.value("extent", mixed.Size(operand=memref, mode=mode, span=span), INDEX)


def _entry(b: Builder, operand: v1.Operand) -> int | Name:
    """An offset or a size: version 2 has integers there, too."""
    return b.known(operand) if isinstance(operand, Name) else int(operand.value)


def _positive(b: Builder, number: int, span: Span | None, what: str) -> int:
    if number <= 0:
        b.reports.add(f"{what} must be positive, got {number}", span)
    return max(number, 1)


RULES: Final = {
    v1.Expand: expand,
    v1.Fuse: fuse,
    v1.Load: load,
    v1.Size: size,
    v1.Store: store,
    v1.Subview: subview,
}
