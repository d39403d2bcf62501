"""Allocation, loads, stores, atomic accesses and views."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from tlx.frontends.tensor_language.operations.core import MEMORY, UPDATES, Scope, Semantics, UpdateOp, operation, spelt
from tlx.frontends.tensor_language.syntax.forms import (
    attributes,
    bracketed,
    comma,
    expand_shape,
    indices,
    integer,
    mark,
    operand,
    operands,
    result,
    slices,
)
from tlx.frontends.tensor_language.syntax.nodes import Dictionary, Instruction, Name, Slice
from tlx.frontends.tensor_language.syntax.parser_types import (
    boolean_type,
    index_type,
    memref_type,
    number_type,
    scalar_or_memref_type,
)

_WRITE: Final = (*operands(value="the value", target="the memref"), indices())
_BRACKET: Final = mark("[", "behind the memref")


@operation("alloca", attributes("attributes"), result(memref_type), region="collective")
@dataclass(kw_only=True, slots=True)
class Alloca(Instruction):
    """`%r = alloca {attributes} : memref-type`."""

    attributes: Dictionary = field(default_factory=Dictionary)


@operation("lifetime_stop", operand("memref", "the memref"), results="none", region="collective")
@dataclass(kw_only=True, slots=True)
class LifetimeStop(Instruction):
    """`lifetime_stop %memref`."""

    memref: Name


@operation("associated", operand("operand", "the memref or group"), result(boolean_type))
@dataclass(kw_only=True, slots=True)
class Associated(Instruction):
    """`%r = associated %memref_or_group : bool`: whether the base address is not null."""

    operand: Name


@operation("atomic_load", operand("source", "the memref"), indices(), result(number_type), modifiers=MEMORY)
@dataclass(kw_only=True, slots=True)
class AtomicLoad(Instruction):
    """`%r = atomic_load[.scope][.semantics] %memref[%i,...] : type`."""

    scope: Scope = "work_group"
    semantics: Semantics = "relaxed"
    source: Name
    indices: tuple[Name, ...] = ()


@operation("atomic_store", *_WRITE, modifiers=MEMORY, results="none", writes="target")
@dataclass(kw_only=True, slots=True)
class AtomicStore(Instruction):
    """`atomic_store[.scope][.semantics] %value, %memref[%i,...]`."""

    scope: Scope = "work_group"
    semantics: Semantics = "relaxed"
    value: Name
    target: Name
    indices: tuple[Name, ...] = ()


@operation(spelt("atomic_{op}", op=UPDATES), *_WRITE, result(number_type), modifiers=MEMORY, writes="target")
@dataclass(kw_only=True, slots=True)
class AtomicUpdate(Instruction):
    """`%old = atomic_add[.scope][.semantics] %value, %memref[%i,...] : type`."""

    op: UpdateOp
    scope: Scope = "work_group"
    semantics: Semantics = "relaxed"
    value: Name
    target: Name
    indices: tuple[Name, ...] = ()


@operation(
    "expand", operand("operand", "the memref"), _BRACKET, integer("mode", "the mode"), mark("->", "behind the mode"),
    expand_shape("shape"), mark("]", "behind the sizes of the new modes"), result(memref_type), views="operand",
)  # fmt: skip
@dataclass(kw_only=True, slots=True)
class Expand(Instruction):
    """`%r = expand %memref[mode->4 x %n] : memref-type`."""

    operand: Name
    mode: int
    shape: tuple[int | Name, ...]


@operation(
    "fuse", operand("operand", "the memref"), _BRACKET, integer("first", "the first mode"), comma("the last mode", ","),
    integer("last", "the last mode"), mark("]", "behind the last mode"), result(memref_type), views="operand",
)  # fmt: skip
@dataclass(kw_only=True, slots=True)
class Fuse(Instruction):
    """`%r = fuse %memref[first,last] : memref-type`; both modes belong to the interval."""

    operand: Name
    first: int
    last: int


@operation("load", operand("source", "the memref or group"), indices(), result(scalar_or_memref_type), views="source")
@dataclass(kw_only=True, slots=True)
class Load(Instruction):
    """`%r = load %memref_or_group[%i,...] : type`."""

    source: Name
    indices: tuple[Name, ...] = ()


@operation("size", operand("operand", "the memref or group"), bracketed("mode", "the mode"), result(index_type))
@dataclass(kw_only=True, slots=True)
class Size(Instruction):
    """`%r = size %memref_or_group[mode] : index`."""

    operand: Name
    mode: int


@operation("store", *_WRITE, results="none", writes="target")
@dataclass(kw_only=True, slots=True)
class Store(Instruction):
    """`store %value, %memref[%i,...]`."""

    value: Name
    target: Name
    indices: tuple[Name, ...] = ()


@operation(
    "subview", operand("operand", "the memref"), _BRACKET, slices("slices"), result(memref_type), views="operand"
)
@dataclass(kw_only=True, slots=True)
class Subview(Instruction):
    """`%r = subview %memref[%offset:%size, 4, ...] : memref-type`."""

    operand: Name
    slices: tuple[Slice, ...] = ()
