"""Conversion of each instruction of version 1 to version 2, with the types and sizes that version 1 infers.

BLAS instructions: the order of modifiers changes (`gemm.n.t.atomic` is `gemm.atomic.n.t` in version 2), and factors
become values. Version 1 allows an atomic update with any beta, and an alpha wider than the inputs; a function with one
of these gets the attribute `"wide_factors"`. Updates of local memory, which belongs to one work-group, need not be
atomic.

Scalars: `i1` is `bool` in version 2, which is no number. Arithmetic on single bits becomes, where possible,

    arith.add, arith.sub      ->  xor                 the last bit of the sum
    arith.mul                 ->  and
    cmp.eq                    ->  xor, then not
    cmp.ne                    ->  xor
    cast %a : i1 -> i32       ->  if %a -> (i32) { 1 } else { 0 }
    cast %a : i32 -> i1       ->  not_equal %a, 0

Views: sizes that version 1 infers are computed.

Rewrite:

    %v = subview %A[%i:?] : memref<f32x16>      ->    %c16 = constant 16 : index
                                                      %rest = sub %c16, %i : index
                                                      %v = subview %A[%i:%rest] : memref<f32x?>

    %v = expand %A[0->4x?] : memref<f32x?>      ->    %extent = size %A[0] : index
                                                      %c4 = constant 4 : index
                                                      %part = div %extent, %c4 : index
                                                      %v = expand %A[0->4 x %part] : memref<f32x4x?>

If both are known, the size is a number in the view.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from tlx.diagnostics import Span
from tlx.frontends.tensor_language.errors import counted
from tlx.frontends.tensor_language.operations import OPERATIONS, control, memory, scalars, subgroups
from tlx.frontends.tensor_language.operations.memory import expanded_type, fused_type, sliced_type
from tlx.frontends.tensor_language.syntax import nodes
from tlx.frontends.tensor_language.syntax.nodes import Instruction, Name, Region, TypeRef
from tlx.frontends.tensor_language.types import (
    BOOL,
    INDEX,
    Extent,
    GroupType,
    MemrefType,
    ScalarType,
    promotable,
    promote,
)
from tlx.frontends.tensor_language.v1 import tree as v1
from tlx.frontends.tensor_language.v1.convert import Converter, spell
from tlx.frontends.tensor_language.v1.parser import transposes_of


def alloca(_: Converter, i: memory.Alloca) -> memory.Alloca:
    """`alloca`, whose memory is local in version 2."""
    (reference,) = i.types
    assert isinstance(reference.type, MemrefType)
    type_ = TypeRef(replace(reference.type, address_space="local"), reference.span)
    return memory.Alloca(types=(type_,))


def lifetime_stop(b: Converter, i: memory.LifetimeStop) -> memory.LifetimeStop:
    """`lifetime_stop`."""
    return memory.LifetimeStop(memref=b.known(i.memref))


def blas_update(b: Converter, i: v1.Blas) -> Instruction:
    """`axpby`, `gemm`, `gemv`, `ger`, `hadamard` and `sum`."""
    alpha_type, *input_types, beta_type, output_type = i.types
    alpha = b.operand(i.alpha, alpha_type)
    inputs: list[MemrefType] = []
    for name, type_ in zip(i.inputs, input_types, strict=True):
        inputs.append(b.memref(name, type_))
    beta = b.operand(i.beta, beta_type)
    output = b.memref(i.output, output_type)
    atomic = i.atomic and _stays_atomic(b, i, output)
    b.has_wide_factors |= _is_wide(alpha_type, inputs)
    entry = OPERATIONS[i.name]
    memrefs = dict(zip("abc", (*i.inputs, i.output), strict=False))
    transposes = {m.field: op for m, op in zip(transposes_of(entry), i.transposes, strict=True)}
    fields: dict[str, Any] = {"alpha": alpha, "beta": beta, "atomic": atomic, **memrefs, **transposes}
    return entry.node(**fields)


def _stays_atomic(b: Converter, i: v1.Blas, output: MemrefType) -> bool:
    if isinstance(i.beta, v1.Constant) and i.beta.value in {0, 1}:
        return True
    is_global = output.address_space == "global"
    b.has_wide_factors |= is_global
    return is_global


def _is_wide(alpha: TypeRef, inputs: Sequence[MemrefType]) -> bool:
    """Whether the inputs do not hold all values of alpha."""
    computed: ScalarType | None = inputs[0].element
    for memref in inputs[1:]:
        computed = promote(computed, memref.element) if computed else None
    return isinstance(alpha.type, ScalarType) and computed is not None and not promotable(alpha.type, computed)


BLAS_RULES: Final = {
    memory.Alloca: alloca,
    v1.Blas: blas_update,
    memory.LifetimeStop: lifetime_stop,
}


def barrier(_: Converter, _i: control.Barrier) -> control.Barrier:
    """`barrier`, with both fences, which version 1 implies."""
    return control.Barrier(fence_global=True, fence_local=True)


def for_(b: Converter, i: v1.For) -> control.For:
    """`for`."""
    (type_,) = i.types
    start, stop = b.operand(i.start, type_), b.operand(i.stop, type_)
    step = None if i.step is None else b.operand(i.step, type_)
    body = b.region(i.body, (i.variable, type_.type))
    return control.For(variable=i.variable, start=start, stop=stop, step=step, body=body)


def foreach(b: Converter, i: v1.Foreach) -> control.Foreach:
    """`foreach`, over one dimension."""
    (type_,) = i.types
    start, stop = b.operand(i.start, type_), b.operand(i.stop, type_)
    body = b.region(i.body, (i.variable, type_.type))
    return control.Foreach(variables=(i.variable,), starts=(start,), stops=(stop,), body=body)


def if_(b: Converter, i: v1.If) -> control.If:
    """`if`."""
    given = i.condition
    condition = b.known(given) if isinstance(given, Name) else b.constant(given, BOOL)
    then = b.region(i.then)
    otherwise = None if i.otherwise is None else b.region(i.otherwise)
    return control.If(condition=condition, then=then, otherwise=otherwise, types=i.types)


def yield_(b: Converter, i: v1.Yield) -> control.Yield | None:
    """`yield`."""
    if len(i.values) != len(i.types):
        got = f"{counted(len(i.values), 'value')} and {counted(len(i.types), 'type')}"
        b.reports.add(f"yield takes a type for each value, got {got}", i.span)
        return None
    return control.Yield(values=tuple(b.operand(v, t) for v, t in zip(i.values, i.types, strict=True)))


CONTROL_RULES: Final = {
    control.Barrier: barrier,
    v1.For: for_,
    v1.Foreach: foreach,
    v1.If: if_,
    v1.Yield: yield_,
}
_ON_BITS: Final[dict[v1.BinaryOp, scalars.ArithBinaryOp]] = {
    "add": "xor",
    "sub": "xor",
    "mul": "and",
    "and": "and",
    "or": "or",
    "xor": "xor",
}


def group_builtin(_: Converter, i: subgroups.Builtin) -> subgroups.Builtin:
    """`group_id` and `group_size`: groups of version 1 are numbered along one dimension."""
    return subgroups.Builtin(name=i.name, component="x", types=(TypeRef(INDEX),))


def binary(b: Converter, i: v1.ArithBinary) -> scalars.ArithBinary | None:
    """`arith.add` and the like."""
    (type_,) = i.types
    lhs, rhs = b.operand(i.lhs, type_), b.operand(i.rhs, type_)
    if type_.type != BOOL:
        return scalars.ArithBinary(op=i.op, lhs=lhs, rhs=rhs, types=i.types)
    if i.op not in _ON_BITS:
        b.reports.add(f"version 2 has no '{i.op}' of truth values; use arith.and, arith.or or arith.xor", i.span)
        return None
    return scalars.ArithBinary(op=_ON_BITS[i.op], lhs=lhs, rhs=rhs, types=i.types)


def unary(b: Converter, i: v1.ArithUnary) -> scalars.ArithUnary | None:
    """`arith.neg` and `arith.not`."""
    (type_,) = i.types
    operand = b.operand(i.operand, type_)
    if type_.type == BOOL and i.op == "neg":
        b.reports.add("version 2 has no 'neg' of truth values; use arith.not", i.span)
        return None
    return scalars.ArithUnary(op=i.op, operand=operand, types=i.types)


def comparison(b: Converter, i: v1.Comparison) -> Instruction | None:
    """`cmp.lt` and the like."""
    (type_,) = i.types
    lhs, rhs = b.operand(i.lhs, type_), b.operand(i.rhs, type_)
    bool_ = (TypeRef(BOOL),)
    if type_.type != BOOL:
        return scalars.Comparison(op=v1.RELATIONS[i.relation], lhs=lhs, rhs=rhs, types=bool_)
    if i.relation not in {"eq", "ne"}:
        b.reports.add(f"version 2 has no 'cmp.{i.relation}' of truth values; use cmp.eq or cmp.ne", i.span)
        return None
    differ = scalars.ArithBinary(op="xor", lhs=lhs, rhs=rhs, types=bool_, span=i.span)
    if i.relation == "ne":
        return differ
    return scalars.ArithUnary(op="not", operand=b.value("differ", differ, BOOL), types=bool_)


def cast(b: Converter, i: v1.Cast) -> Instruction:
    """`cast`, or its equivalent if one side is a boolean."""
    source, target = i.types
    assert isinstance(target.type, ScalarType)
    operand = b.operand(i.operand, source)
    if BOOL not in {source.type, target.type}:
        return scalars.Cast(operand=operand, types=(target,))
    if source.type == target.type:
        return scalars.ArithBinary(op="or", lhs=operand, rhs=operand, types=(target,))
    if source.type == BOOL:
        then, otherwise = (_yielding(b, number, target.type, i.span) for number in (1, 0))
        return control.If(condition=operand, then=then, otherwise=otherwise, types=(target,))
    assert isinstance(source.type, ScalarType)
    zero = b.constant(_number(0, source.type, i.span), source.type)
    return scalars.Comparison(op="not_equal", lhs=operand, rhs=zero, types=(target,))


def _yielding(b: Converter, number: int, type_: ScalarType, span: Span | None) -> Region:
    """A region that only yields a number."""
    with b.block() as written:
        b.add(control.Yield(values=(b.constant(_number(number, type_, span), type_),), span=span))
    return Region(written, span)


def _number(number: int, type_: ScalarType, span: Span | None) -> v1.Constant:
    return v1.Constant(float(number) if type_.kind == "float" else number, span)


SCALAR_RULES: Final = {
    v1.ArithBinary: binary,
    v1.ArithUnary: unary,
    v1.Cast: cast,
    v1.Comparison: comparison,
    subgroups.Builtin: group_builtin,
}


def load(b: Converter, i: v1.Load) -> memory.Load:
    """`load`: an element of a memref, or a memref of a group."""
    source = b.expect(i.source, i.types[0])
    indices = tuple(map(b.index, i.indices))
    assert isinstance(source, MemrefType | GroupType)
    type_ = source.memref if isinstance(source, GroupType) else source.element
    return memory.Load(source=i.source, indices=indices, types=(TypeRef(type_),))


def store(b: Converter, i: v1.Store) -> memory.Store:
    """`store`."""
    b.known(i.value)
    b.expect(i.target, i.types[0])
    return memory.Store(value=i.value, target=i.target, indices=tuple(map(b.index, i.indices)))


def size(b: Converter, i: memory.Size) -> memory.Size:
    """`size`."""
    b.expect(i.operand, i.types[0])
    return memory.Size(operand=i.operand, mode=i.mode, types=(TypeRef(INDEX),))


def fuse(b: Converter, i: memory.Fuse) -> memory.Fuse | None:
    """`fuse`."""
    source = b.memref(i.operand, i.types[0])
    if not 0 <= i.first < i.last < source.order:
        b.reports.add(
            f"fuse takes two modes in order, below {source.order} for {spell(source)}, got {i.first} and {i.last}",
            i.span,
        )
        return None
    types = (TypeRef(fused_type(source, i.first, i.last)),)
    return memory.Fuse(operand=i.operand, first=i.first, last=i.last, types=types)


def subview(b: Converter, i: v1.Subview) -> memory.Subview | None:
    """`subview`, with the sizes that it omits."""
    source = b.memref(i.operand, i.types[0])
    if len(i.slices) != source.order:
        expected = f"{source.order} for {spell(source)}"
        b.reports.add(f"subview takes a slice for each mode, {expected}, got {len(i.slices)}", i.span)
        return None
    slices = tuple(_slice(b, i, source, mode, s) for mode, s in enumerate(i.slices))
    return memory.Subview(operand=i.operand, slices=slices, types=(TypeRef(sliced_type(source, slices)),))


def _slice(b: Converter, i: v1.Subview, source: MemrefType, mode: int, written: v1.Slice) -> nodes.Slice:
    offset = _entry(b, written.offset)
    if written.size is None:
        return nodes.Slice(offset, None, written.span)
    if not isinstance(written.size, v1.Rest):
        entry = _entry(b, written.size)
        size_ = _positive(b, entry, written.size.span, "the size of a slice") if isinstance(entry, int) else entry
        return nodes.Slice(offset, size_, written.span)
    extent = source.shape[mode]
    if isinstance(offset, int) and extent is not None:
        left = _positive(b, extent - offset, written.span, f"what is left of {extent} behind {offset}")
        return nodes.Slice(offset, left, written.span)
    whole = _extent(b, i.operand, mode, extent, i.span)
    if offset == 0:
        return nodes.Slice(offset, whole, written.span)
    first = b.index(written.offset)
    rest = scalars.ArithBinary(op="sub", lhs=whole, rhs=first, span=written.span)
    return nodes.Slice(offset, b.value("rest", rest, INDEX), written.span)


def expand(b: Converter, i: v1.Expand) -> memory.Expand | None:
    """`expand`, with the size that it omits."""
    source = b.memref(i.operand, i.types[0])
    if not 0 <= i.mode < source.order:
        b.reports.add(f"expand takes a mode below {source.order} for {spell(source)}, got {i.mode}", i.span)
        return None
    entries = _expand_shape(b, i, source.shape[i.mode])
    if entries is None:
        return None
    types = (TypeRef(expanded_type(source, i.mode, entries)),)
    return memory.Expand(operand=i.operand, mode=i.mode, shape=entries, types=types)


def _expand_shape(b: Converter, i: v1.Expand, extent: Extent) -> tuple[int | Name, ...] | None:
    """The shape, with the inferred size if there is one."""
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


def _part(b: Converter, i: v1.Expand, extent: Extent, known: int, names: list[Name]) -> int | Name:
    """The mode's size divided by all other entries."""
    if extent is not None and not names:
        return extent // known
    whole = _extent(b, i.operand, i.mode, extent, i.span)
    factors = ([] if known == 1 else [b.constant(v1.Constant(known, i.span), INDEX)]) + names
    if not factors:
        return whole
    divisor = factors[0]
    for factor in factors[1:]:
        product = scalars.ArithBinary(op="mul", lhs=divisor, rhs=factor, span=i.span)
        divisor = b.value("product", product, INDEX)
    return b.value("part", scalars.ArithBinary(op="div", lhs=whole, rhs=divisor, span=i.span), INDEX)


def _extent(b: Converter, memref: Name, mode: int, extent: Extent, span: Span | None) -> Name:
    """The size of a mode as a value."""
    if extent is not None:
        return b.constant(v1.Constant(extent, span), INDEX)
    return b.value("extent", memory.Size(operand=memref, mode=mode, span=span), INDEX)


def _entry(b: Converter, operand: v1.Operand) -> int | Name:
    """An offset or a size: version 2 has integers there, too."""
    return b.known(operand) if isinstance(operand, Name) else int(operand.value)


def _positive(b: Converter, number: int, span: Span | None, what: str) -> int:
    if number <= 0:
        b.reports.add(f"{what} must be positive, got {number}", span)
    return max(number, 1)


VIEW_RULES: Final = {
    v1.Expand: expand,
    memory.Fuse: fuse,
    v1.Load: load,
    memory.Size: size,
    v1.Store: store,
    v1.Subview: subview,
}
