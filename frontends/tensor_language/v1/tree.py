"""Instructions of version 1: a class for each production, with the types of version 2.

Version 1 cannot be parsed directly into the tree of version 2, as the two differ:

    %y = arith.add %x, 1 : f32          an operand may be a constant, in version 2 it is a name
    %v = load %A[%i] : memref<f32x?>    the type is that of what is read, in version 2 that of the result
    %s = subview %A[%i:?] : ...         a size may be left out, in version 2 it is written

What is missing follows from the types of names, which are unknown to the grammar: `convert` converts the tree after
parsing. A class has the fields of its production, and `types` as they are written. Functions and regions are the nodes
of version 2, as are instructions whose operands are names in both versions; their types are converted later.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Literal

from tlx.diagnostics import Span
from tlx.frontends.tensor_language.operations.core import Transpose
from tlx.frontends.tensor_language.operations.scalars import ComparisonOp
from tlx.frontends.tensor_language.syntax.nodes import Instruction, Name, Region

BinaryOp = Literal["add", "sub", "mul", "div", "rem", "shl", "shr", "and", "or", "xor"]
UnaryOp = Literal["neg", "not"]
Relation = Literal["eq", "ne", "gt", "ge", "lt", "le"]
BlasName = Literal["axpby", "gemm", "gemv", "ger", "hadamard", "sum"]


@dataclass(frozen=True, slots=True)
class Constant:
    """A constant operand; `true` and `false` are integers."""

    value: bool | int | float
    span: Span | None = field(default=None, compare=False, repr=False)


Operand = Name | Constant


@dataclass(frozen=True, slots=True)
class Rest:
    """`?` of a slice or of an expand shape: the rest of the mode."""

    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Slice:
    """`offset:size`, `offset:?`, `offset` or `:` of a subview; a plain colon is `0:?`."""

    offset: Operand
    size: Operand | Rest | None
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(kw_only=True, slots=True)
class ArithBinary(Instruction):
    """`%r = arith.add %a, 1 : type`."""

    op: BinaryOp
    lhs: Operand
    rhs: Operand


@dataclass(kw_only=True, slots=True)
class ArithUnary(Instruction):
    """`%r = arith.neg %a : type`."""

    op: UnaryOp
    operand: Operand


@dataclass(kw_only=True, slots=True)
class Blas(Instruction):
    """`gemm.n.t.atomic alpha, %A, %B, beta, %C : type, memref-type, memref-type, type, memref-type` and the like.

    Attributes:
        name: Which one.
        transposes: The transpose modifiers, as many as it has.
        atomic: Whether the output is updated atomically.
        alpha: Factor of what is computed.
        inputs: One memref or two.
        beta: Factor of what the output holds.
        output: The memref that is updated.
    """

    name: BlasName
    transposes: tuple[Transpose, ...] = ()
    atomic: bool = False
    alpha: Operand
    inputs: tuple[Name, ...]
    beta: Operand
    output: Name


@dataclass(kw_only=True, slots=True)
class Cast(Instruction):
    """`%r = cast %a : source -> target`."""

    operand: Operand


@dataclass(kw_only=True, slots=True)
class Comparison(Instruction):
    """`%r = cmp.lt %a, 1 : type`."""

    relation: Relation
    lhs: Operand
    rhs: Operand


@dataclass(kw_only=True, slots=True)
class Expand(Instruction):
    """`%r = expand %memref[mode->4x?] : memref-type`."""

    operand: Name
    mode: int
    shape: tuple[int | Name | Rest, ...]


@dataclass(kw_only=True, slots=True)
class For(Instruction):
    """`for %i=0,%n,2 : type { ... }`."""

    variable: Name
    start: Operand
    stop: Operand
    step: Operand | None = None
    body: Region


@dataclass(kw_only=True, slots=True)
class Foreach(Instruction):
    """`foreach %i=0,%n : type { ... }`."""

    variable: Name
    start: Operand
    stop: Operand
    body: Region


@dataclass(kw_only=True, slots=True)
class If(Instruction):
    """`%r,... = if %condition -> (type,...) { ... } else { ... }`."""

    condition: Operand
    then: Region
    otherwise: Region | None = None


@dataclass(kw_only=True, slots=True)
class Load(Instruction):
    """`%r = load %memref_or_group[%i,1] : memref-or-group-type`."""

    source: Name
    indices: tuple[Operand, ...]


@dataclass(kw_only=True, slots=True)
class Store(Instruction):
    """`store %value, %memref[%i,1] : memref-type`."""

    value: Name
    target: Name
    indices: tuple[Operand, ...]


@dataclass(kw_only=True, slots=True)
class Subview(Instruction):
    """`%r = subview %memref[1:4,:,%i] : memref-type`."""

    operand: Name
    slices: tuple[Slice, ...]


@dataclass(kw_only=True, slots=True)
class Yield(Instruction):
    """`yield %a, 1 : type, type`."""

    values: tuple[Operand, ...] = ()


RELATIONS: Final[dict[Relation, ComparisonOp]] = {
    "eq": "equal",
    "ne": "not_equal",
    "gt": "greater_than",
    "ge": "greater_than_equal",
    "lt": "less_than",
    "le": "less_than_equal",
}
"""The names of the comparisons in version 2."""
