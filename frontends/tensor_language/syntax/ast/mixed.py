"""Instructions that may stand in collective and in SPMD regions."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from tlx.frontends.tensor_language.syntax.ast.base import Dictionary, Instruction, Name, Region, Slice

ArithBinaryOp = Literal["add", "sub", "mul", "div", "rem", "max", "min", "shl", "shr", "and", "or", "xor", "pow"]
ArithUnaryOp = Literal["abs", "neg", "not", "conj", "im", "re", "sqrt", "tanh"]
ComparisonOp = Literal["equal", "not_equal", "greater_than", "greater_than_equal", "less_than", "less_than_equal"]
MathOp = Literal[
    "cos", "sin", "exp", "exp2", "log", "log2",
    "native_cos", "native_sin", "native_exp", "native_exp2", "native_log", "native_log2",
]  # fmt: skip
UpdateOp = Literal["add", "max", "min"]
Scope = Literal["cross_device", "device", "work_group", "subgroup"]
Semantics = Literal["relaxed", "acquire", "release", "acquire_release", "sequentially_consistent"]
BuiltinName = Literal[
    "group_id", "num_groups", "num_subgroups", "subgroup_size",
    "subgroup_id", "subgroup_linear_id", "subgroup_local_id",
]  # fmt: skip
Component = Literal["x", "y", "z"]


@dataclass(kw_only=True, slots=True)
class ArithBinary(Instruction):
    """`%r = add %a, %b : type`, on scalars and on cooperative matrices."""

    op: ArithBinaryOp
    lhs: Name
    rhs: Name


@dataclass(kw_only=True, slots=True)
class ArithUnary(Instruction):
    """`%r = neg %a : type`, on scalars and on cooperative matrices."""

    op: ArithUnaryOp
    operand: Name


@dataclass(kw_only=True, slots=True)
class Associated(Instruction):
    """`%r = associated %memref_or_group : bool`: whether the base address is not null."""

    operand: Name


@dataclass(kw_only=True, slots=True)
class AtomicLoad(Instruction):
    """`%r = atomic_load[.scope][.semantics] %memref[%i,...] : type`."""

    scope: Scope = "work_group"
    semantics: Semantics = "relaxed"
    source: Name
    indices: tuple[Name, ...] = ()


@dataclass(kw_only=True, slots=True)
class AtomicStore(Instruction):
    """`atomic_store[.scope][.semantics] %value, %memref[%i,...]`."""

    scope: Scope = "work_group"
    semantics: Semantics = "relaxed"
    value: Name
    target: Name
    indices: tuple[Name, ...] = ()


@dataclass(kw_only=True, slots=True)
class AtomicUpdate(Instruction):
    """`%old = atomic_add[.scope][.semantics] %value, %memref[%i,...] : type`."""

    op: UpdateOp
    scope: Scope = "work_group"
    semantics: Semantics = "relaxed"
    value: Name
    target: Name
    indices: tuple[Name, ...] = ()


@dataclass(kw_only=True, slots=True)
class Barrier(Instruction):
    """`barrier[.global][.local]`."""

    fence_global: bool = False
    fence_local: bool = False


@dataclass(kw_only=True, slots=True)
class Builtin(Instruction):
    """`%r = group_id.x : index` and the like; the `subgroup_id`s stand in SPMD regions only."""

    name: BuiltinName
    component: Component | None = None


@dataclass(kw_only=True, slots=True)
class Cast(Instruction):
    """`%r = cast %a : type`, of scalars and of cooperative matrices."""

    operand: Name


@dataclass(kw_only=True, slots=True)
class Comparison(Instruction):
    """`%r = less_than %a, %b : bool`."""

    op: ComparisonOp
    lhs: Name
    rhs: Name


@dataclass(kw_only=True, slots=True)
class Constant(Instruction):
    """`%r = constant 1.0 : type`; every entry of a cooperative matrix."""

    value: bool | int | float | complex


@dataclass(kw_only=True, slots=True)
class Expand(Instruction):
    """`%r = expand %memref[mode->4 x %n] : memref-type`."""

    operand: Name
    mode: int
    shape: tuple[int | Name, ...]


@dataclass(kw_only=True, slots=True)
class Fuse(Instruction):
    """`%r = fuse %memref[first,last] : memref-type`; both modes belong to the interval."""

    operand: Name
    first: int
    last: int


@dataclass(kw_only=True, slots=True)
class For(Instruction):
    """`%r,... = for %i=%from,%to[,%step] init(%x=%x0,...)->(type,...) { ... } attributes {...}`."""

    variable: Name
    start: Name
    stop: Name
    step: Name | None = None
    carried: tuple[Name, ...] = ()
    initial: tuple[Name, ...] = ()
    body: Region
    attributes: Dictionary = field(default_factory=Dictionary)


@dataclass(kw_only=True, slots=True)
class If(Instruction):
    """`%r,... = if %condition -> (type,...) { ... } else { ... }`."""

    condition: Name
    then: Region
    otherwise: Region | None = None


@dataclass(kw_only=True, slots=True)
class Load(Instruction):
    """`%r = load %memref_or_group[%i,...] : type`."""

    source: Name
    indices: tuple[Name, ...] = ()


@dataclass(kw_only=True, slots=True)
class Math(Instruction):
    """`%r = exp %a : type`."""

    op: MathOp
    operand: Name


@dataclass(kw_only=True, slots=True)
class Size(Instruction):
    """`%r = size %memref_or_group[mode] : index`."""

    operand: Name
    mode: int


@dataclass(kw_only=True, slots=True)
class Store(Instruction):
    """`store %value, %memref[%i,...]`."""

    value: Name
    target: Name
    indices: tuple[Name, ...] = ()


@dataclass(kw_only=True, slots=True)
class Subview(Instruction):
    """`%r = subview %memref[%offset:%size, 4, ...] : memref-type`."""

    operand: Name
    slices: tuple[Slice, ...] = ()


@dataclass(kw_only=True, slots=True)
class Yield(Instruction):
    """`yield (%a, ...)`."""

    values: tuple[Name, ...] = ()
