"""Atomic loads, stores and updates of all active work-items.

In a collective region an access is made once for the work-group. In an SPMD region every active work-item makes its
own, one after the other; where all of them update one integer, they do so together:

    %total = reduction of the operands;  %old = atomicrmw add ptr %p, %total;  lane i sees %old + exclusive scan [i]
"""

from __future__ import annotations

from typing import Final

from tlx.frontends.tensor_language.ast.base import Name
from tlx.frontends.tensor_language.ast.mixed import AtomicLoad, AtomicStore, AtomicUpdate
from tlx.frontends.tensor_language.emit import atomics
from tlx.frontends.tensor_language.emit.access import element_address
from tlx.frontends.tensor_language.emit.arithmetic import binary
from tlx.frontends.tensor_language.emit.emitter import Emitter
from tlx.frontends.tensor_language.emit.masks import each_active
from tlx.frontends.tensor_language.emit.numbers import splat, vary
from tlx.frontends.tensor_language.emit.subgroup_operations import reduced, scanned
from tlx.frontends.tensor_language.emit.values import Number, Parts, register_type
from tlx.frontends.tensor_language.types import MemrefType, ScalarType
from tlx.ir.types import Type, VectorType
from tlx.ir.values import Value


def atomic_load(e: Emitter, i: AtomicLoad) -> None:
    """`%r = atomic_load[.scope][.semantics] %memref[%i,...] : type`."""
    address, memory = _place(e, i.source, i.indices)
    type_ = memory.element
    if not isinstance(address.type, VectorType):
        e.bind(i.result, Number(type_, atomics.load(e, address, memory, i.semantics)))
        return
    parts = each_active(e, [address], _part_types(type_), lambda lane: atomics.load(e, lane[0], memory, i.semantics))
    e.bind(i.result, Number(type_, parts))


def atomic_store(e: Emitter, i: AtomicStore) -> None:
    """`atomic_store[.scope][.semantics] %value, %memref[%i,...]`."""
    address, memory = _place(e, i.target, i.indices)
    number = e.number(i.value)
    if not isinstance(address.type, VectorType) and not number.is_varying:
        atomics.store(e, address, memory, number.parts, i.semantics)
        return

    def one(lane: Parts) -> Parts:
        atomics.store(e, lane[0], memory, lane[1:], i.semantics)
        return ()

    each_active(e, [address, *number.parts], [], one)


def atomic_update(e: Emitter, i: AtomicUpdate) -> None:
    """`%old = atomic_add[.scope][.semantics] %value, %memref[%i,...] : type`."""
    address, memory = _place(e, i.target, i.indices)
    type_ = memory.element
    number = e.number(i.value)
    is_shared = not isinstance(address.type, VectorType)
    if e.subgroup is None:
        parts = atomics.update(e, i.op, address, memory, number.parts, i.semantics)
    elif is_shared and type_.kind == "int":
        parts = _updated_together(e, i, address, memory, vary(e, number))
    else:
        parts = each_active(
            e,
            [address, *number.parts],
            _part_types(type_),
            lambda lane: atomics.update(e, i.op, lane[0], memory, lane[1:], i.semantics),
        )
    e.bind(i.result, Number(type_, parts))


def _updated_together(e: Emitter, i: AtomicUpdate, address: Value, memory: MemrefType, number: Number) -> Parts:
    """One update with the operands of all active work-items, as if they had come in order."""
    total = reduced(e, i.op, number)
    old = atomics.update(e, i.op, address, memory, total.parts, i.semantics)
    before = scanned(e, "exclusive_scan", i.op, number)
    return binary(e, i.op, number.type, (splat(e, old[0]),), before.parts)


def _place(e: Emitter, name: Name, indices: tuple[Name, ...]) -> tuple[Value, MemrefType]:
    memref = e.memref(name)
    return element_address(e, memref, indices), memref.type


def _part_types(type_: ScalarType) -> list[Type]:
    return [register_type(type_)] * (2 if type_.kind == "complex" else 1)


RULES: Final = {AtomicLoad: atomic_load, AtomicStore: atomic_store, AtomicUpdate: atomic_update}
