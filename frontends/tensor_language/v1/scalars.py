"""Scalars: arithmetic, comparisons, casts.

`i1` is `bool` in version 2, which is no number. What version 1 computes with one bit is, where version 2 can say it,

    arith.add, arith.sub      ->  xor                 the last bit of the sum
    arith.mul                 ->  and
    cmp.eq                    ->  xor, then not
    cmp.ne                    ->  xor
    cast %a : i1 -> i32       ->  if %a -> (i32) { 1 } else { 0 }
    cast %a : i32 -> i1       ->  not_equal %a, 0
"""

from __future__ import annotations

from typing import Final

from tlx.diagnostics import Span
from tlx.frontends.tensor_language.ast import mixed
from tlx.frontends.tensor_language.ast.base import Instruction, Region, TypeRef
from tlx.frontends.tensor_language.types import BOOL, INDEX, ScalarType
from tlx.frontends.tensor_language.v1 import tree as v1
from tlx.frontends.tensor_language.v1.builder import Builder

_ON_BITS: Final[dict[v1.BinaryOp, mixed.ArithBinaryOp]] = {
    "add": "xor",
    "sub": "xor",
    "mul": "and",
    "and": "and",
    "or": "or",
    "xor": "xor",
}


def group_id(_: Builder, _i: v1.GroupId) -> mixed.Builtin:
    """`group_id`: groups of version 1 are numbered along one dimension."""
    return mixed.Builtin(name="group_id", component="x", types=(TypeRef(INDEX),))


def group_size(_: Builder, _i: v1.GroupSize) -> mixed.Builtin:
    """`group_size`: how many groups run the kernel."""
    return mixed.Builtin(name="num_groups", component="x", types=(TypeRef(INDEX),))


def binary(b: Builder, i: v1.ArithBinary) -> mixed.ArithBinary | None:
    """`arith.add` and the like."""
    (type_,) = i.types
    lhs, rhs = b.operand(i.lhs, type_), b.operand(i.rhs, type_)
    if type_.type != BOOL:
        return mixed.ArithBinary(op=i.op, lhs=lhs, rhs=rhs, types=i.types)
    if i.op not in _ON_BITS:
        b.reports.add(f"version 2 has no '{i.op}' of truth values; use arith.and, arith.or or arith.xor", i.span)
        return None
    return mixed.ArithBinary(op=_ON_BITS[i.op], lhs=lhs, rhs=rhs, types=i.types)


def unary(b: Builder, i: v1.ArithUnary) -> mixed.ArithUnary | None:
    """`arith.neg` and `arith.not`."""
    (type_,) = i.types
    operand = b.operand(i.operand, type_)
    if type_.type == BOOL and i.op == "neg":
        b.reports.add("version 2 has no 'neg' of truth values; use arith.not", i.span)
        return None
    return mixed.ArithUnary(op=i.op, operand=operand, types=i.types)


def comparison(b: Builder, i: v1.Comparison) -> Instruction | None:
    """`cmp.lt` and the like."""
    (type_,) = i.types
    lhs, rhs = b.operand(i.lhs, type_), b.operand(i.rhs, type_)
    bool_ = (TypeRef(BOOL),)
    if type_.type != BOOL:
        return mixed.Comparison(op=v1.RELATIONS[i.relation], lhs=lhs, rhs=rhs, types=bool_)
    if i.relation not in {"eq", "ne"}:
        b.reports.add(f"version 2 has no 'cmp.{i.relation}' of truth values; use cmp.eq or cmp.ne", i.span)
        return None
    differ = mixed.ArithBinary(op="xor", lhs=lhs, rhs=rhs, types=bool_, span=i.span)
    if i.relation == "ne":
        return differ
    return mixed.ArithUnary(op="not", operand=b.value("differ", differ, BOOL), types=bool_)


def cast(b: Builder, i: v1.Cast) -> Instruction:
    """`cast`, and what stands for it where one side is a truth value."""
    source, target = i.types
    assert isinstance(target.type, ScalarType)
    operand = b.operand(i.operand, source)
    if BOOL not in {source.type, target.type}:
        return mixed.Cast(operand=operand, types=(target,))
    if source.type == target.type:
        return mixed.ArithBinary(op="or", lhs=operand, rhs=operand, types=(target,))
    if source.type == BOOL:
        then, otherwise = (_yielding(b, number, target.type, i.span) for number in (1, 0))
        return mixed.If(condition=operand, then=then, otherwise=otherwise, types=(target,))
    assert isinstance(source.type, ScalarType)
    zero = b.constant(_number(0, source.type, i.span), source.type)
    return mixed.Comparison(op="not_equal", lhs=operand, rhs=zero, types=(target,))


def _yielding(b: Builder, number: int, type_: ScalarType, span: Span | None) -> Region:
    """A region that gives a number and nothing else."""
    with b.block() as written:
        b.add(mixed.Yield(values=(b.constant(_number(number, type_, span), type_),), span=span))
    return Region(written, span)


def _number(number: int, type_: ScalarType, span: Span | None) -> v1.Constant:
    return v1.Constant(float(number) if type_.kind == "float" else number, span)


RULES: Final = {
    v1.ArithBinary: binary,
    v1.ArithUnary: unary,
    v1.Cast: cast,
    v1.Comparison: comparison,
    v1.GroupId: group_id,
    v1.GroupSize: group_size,
}
