"""Atomic access: of one scalar in memory, and of all active work-items.

    i32 add, max, min       atomicrmw add, max, min
    f32, f64 add            atomicrmw fadd
    everything else         a compare-and-exchange loop on the bits:

      %first = load atomic i32, ptr %p monotonic
    retry:
      %old = phi i32 [ %first, %before ], [ %seen, %retry ]
      %new = bits of f(value of %old, operand)
      %pair = cmpxchg ptr %p, i32 %old, i32 %new monotonic monotonic
      %seen = extractvalue { i32, i1 } %pair, 0
      %done = extractvalue { i32, i1 } %pair, 1
      br i1 %done, label %end, label %retry

LLVM's default scope, the system, includes every scope of the language. A complex number is accessed part by part.

Local memory is private to the thread that runs the work-group, so plain loads and stores suffice. Global memory is
accessed atomically even without threads, because several threads may call a kernel at once.

In a collective region an access is made once for the work-group. In an SPMD region every active work-item makes its
own, one after the other; if all of them update the same integer, a single update is made:

    %total = reduction of the operands;  %old = atomicrmw add ptr %p, %total;  lane i sees %old + exclusive scan [i]
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tlx.frontends.tensor_language.emit import threads
from tlx.frontends.tensor_language.emit.arithmetic.scalars import binary, from_memory, splat, to_memory, vary
from tlx.frontends.tensor_language.emit.emitter import Emitter, Number, Parts, memory_type, register_type
from tlx.frontends.tensor_language.emit.memory import element_address, part_addresses
from tlx.frontends.tensor_language.emit.subgroups import for_each_active, reduce_subgroup, scan_subgroup
from tlx.frontends.tensor_language.operations.core import Semantics, UpdateOp
from tlx.frontends.tensor_language.operations.memory import AtomicLoad, AtomicStore, AtomicUpdate
from tlx.frontends.tensor_language.syntax.nodes import Name
from tlx.frontends.tensor_language.types import MemrefType, ScalarType
from tlx.ir.rewrite import add_incoming
from tlx.ir.types import I1, VOID, IntType, StructType, Type, VectorType
from tlx.ir.values import Value

_ORDERINGS: Final[dict[Semantics, str]] = {
    "relaxed": "monotonic",
    "acquire": "acquire",
    "release": "release",
    "acquire_release": "acq_rel",
    "sequentially_consistent": "seq_cst",
}
# Loads and failed exchanges order only what follows them, stores only what precedes them.
_OF_LOADS: Final = {"release": "monotonic", "acq_rel": "acquire"}
_OF_STORES: Final = {"acquire": "monotonic", "acq_rel": "release"}


def load_scalar(e: Emitter, address: Value, memory: MemrefType, semantics: Semantics = "relaxed") -> Parts:
    """The parts of a scalar, each read atomically.

    Args:
        e: The emitter.
        address: The address of the scalar's first part; not a vector.
        memory: The type of the memref that contains it.
        semantics: The memory order.
    """
    type_ = memory.element
    if _is_private(e, memory):
        return tuple(_plain_load(e, place, type_.part) for place in part_addresses(e, address, type_))
    ordering = _ORDERINGS[semantics]
    ordering = _OF_LOADS.get(ordering, ordering)
    return tuple(
        _from_bits(e, _load_bits(e, place, type_, ordering), type_) for place in part_addresses(e, address, type_)
    )


def store_scalar(
    e: Emitter, address: Value, memory: MemrefType, parts: Parts, semantics: Semantics = "relaxed"
) -> None:
    """Write the parts of a scalar, each atomically; see `load_scalar`."""
    type_ = memory.element
    if _is_private(e, memory):
        for place, part in zip(part_addresses(e, address, type_), parts, strict=True):
            _plain_store(e, place, type_.part, part)
        return
    ordering = _ORDERINGS[semantics]
    ordering = _OF_STORES.get(ordering, ordering)
    for place, part in zip(part_addresses(e, address, type_), parts, strict=True):
        bits = _to_bits(e, part, type_)
        pointer = e.b.retype(place, bits.type)
        body = f"store atomic {bits.typed}, {pointer.typed} {ordering}, align {type_.part.size}"
        instruction = e.b.emit("store", VOID, [bits, pointer], body)
        instruction.flags, instruction.align = ("atomic",), type_.part.size


def update_scalar(
    e: Emitter, op: UpdateOp, address: Value, memory: MemrefType, parts: Parts, semantics: Semantics = "relaxed"
) -> Parts:
    """`memory = op(memory, parts)`, atomically for each part; returns the old value.

    Args:
        e: The emitter.
        op: The operation; complex numbers are only added.
        address: The address of the scalar's first part; not a vector.
        memory: The type of the memref that contains it.
        parts: The operand, uniform.
        semantics: The memory order.
    """
    type_ = memory.element
    places = part_addresses(e, address, type_)
    if _is_private(e, memory):
        return tuple(_plain_update(e, op, p, type_.part, x) for p, x in zip(places, parts, strict=True))
    ordering = _ORDERINGS[semantics]
    return tuple(_update(e, op, p, type_.part, x, ordering) for p, x in zip(places, parts, strict=True))


def replace_by(e: Emitter, address: Value, memory: MemrefType, function: Callable[[Value], Value]) -> None:
    """`memory = function(memory)`, atomically with relaxed order, for a scalar that is not complex."""
    if _is_private(e, memory):
        _plain_store(e, address, memory.element, function(_plain_load(e, address, memory.element)))
        return
    _exchanged(e, address, memory.element, "monotonic", function)


def _is_private(e: Emitter, memory: MemrefType) -> bool:
    """Whether only the thread that runs the work-group can see an element."""
    return e.item is None and memory.address_space == "local"


def _once(e: Emitter, type_: ScalarType, access: Callable[[], Parts]) -> Parts:
    """An access that is made once for the current region, and the parts that it gives."""
    return access() if e.item is None else threads.once(e, _part_types(type_), access)


def _plain_load(e: Emitter, address: Value, type_: ScalarType) -> Value:
    return from_memory(e, e.b.load(memory_type(type_), address, type_.size), type_)


def _plain_store(e: Emitter, address: Value, type_: ScalarType, value: Value) -> None:
    e.b.store(to_memory(e, value, type_), address, type_.size)


def _plain_update(e: Emitter, op: UpdateOp, address: Value, type_: ScalarType, operand: Value) -> Value:
    old = _plain_load(e, address, type_)
    (new,) = binary(e, op, type_, (old,), (operand,))
    _plain_store(e, address, type_, new)
    return old


def _update(e: Emitter, op: UpdateOp, address: Value, type_: ScalarType, operand: Value, ordering: str) -> Value:
    if type_.kind == "int":
        return _rmw(e, op, address, operand, ordering)
    if op == "add" and not type_.is_narrow_float:
        return _rmw(e, "fadd", address, operand, ordering)
    return _exchanged(e, address, type_, ordering, lambda old: binary(e, op, type_, (old,), (operand,))[0])


def _rmw(e: Emitter, operation: str, address: Value, operand: Value, ordering: str) -> Value:
    pointer = e.b.retype(address, operand.type)
    body = f"atomicrmw {operation} {pointer.typed}, {operand.typed} {ordering}"
    instruction = e.b.emit("atomicrmw", operand.type, [pointer, operand], body)
    instruction.predicate = operation
    return instruction.value


def _exchanged(
    e: Emitter, address: Value, type_: ScalarType, ordering: str, function: Callable[[Value], Value]
) -> Value:
    """Replace a value by a function of it; returns the old value."""
    b = e.b
    first = _load_bits(e, address, type_, "monotonic")
    before = b.block
    again = b.new_block("retry")
    end = b.new_block("exchanged", again)
    b.branch(again)
    b.at_end(again)
    body = f"phi {first.type} [ {first}, %{before.name} ]"
    phi = b.emit("phi", first.type, [first, before.value], body)
    old = _from_bits(e, phi.value, type_)
    seen, done = _compare_exchange(e, address, phi.value, _to_bits(e, function(old), type_), ordering)
    add_incoming(phi, seen, b.block.name)
    b.branch_if(done, end, again)
    b.at_end(end)
    return old


def _compare_exchange(e: Emitter, address: Value, old: Value, new: Value, ordering: str) -> tuple[Value, Value]:
    """The value in memory, and whether it was `old` and has been replaced."""
    pair_type = StructType((old.type, I1))
    pointer = e.b.retype(address, old.type)
    failure = _OF_LOADS.get(ordering, ordering)
    body = f"cmpxchg {pointer.typed}, {old.typed}, {new.typed} {ordering} {failure}"
    pair = e.b.value("cmpxchg", pair_type, [pointer, old, new], body)
    return _extracted(e, pair, pair_type, 0), _extracted(e, pair, pair_type, 1)


def _extracted(e: Emitter, pair: Value, type_: StructType, k: int) -> Value:
    instruction = e.b.emit("extractvalue", type_.elements[k], [pair], f"extractvalue {pair.typed}, {k}")
    instruction.indices = (k,)
    return instruction.value


def _load_bits(e: Emitter, address: Value, type_: ScalarType, ordering: str) -> Value:
    bits = IntType(type_.part.bits)
    pointer = e.b.retype(address, bits)
    body = f"load atomic {bits}, {pointer.typed} {ordering}, align {type_.part.size}"
    instruction = e.b.emit("load", bits, [pointer], body)
    instruction.flags, instruction.align = ("atomic",), type_.part.size
    return instruction.value


def _to_bits(e: Emitter, part: Value, type_: ScalarType) -> Value:
    """A part as an integer of its size in memory."""
    value = to_memory(e, part, type_)
    return e.b.cast("bitcast", value, IntType(type_.part.bits))


def _from_bits(e: Emitter, bits: Value, type_: ScalarType) -> Value:
    return from_memory(e, e.b.cast("bitcast", bits, memory_type(type_)), type_)


def atomic_load(e: Emitter, i: AtomicLoad) -> None:
    """`%r = atomic_load[.scope][.semantics] %memref[%i,...] : type`."""
    address, memory = _place(e, i.source, i.indices)
    type_ = memory.element
    if not isinstance(address.type, VectorType):
        loaded = _once(e, type_, lambda: load_scalar(e, address, memory, i.semantics))
        e.bind(i.result, Number(type_, loaded))
        return
    parts = for_each_active(e, [address], _part_types(type_), lambda lane: load_scalar(e, lane[0], memory, i.semantics))
    e.bind(i.result, Number(type_, parts))


def atomic_store(e: Emitter, i: AtomicStore) -> None:
    """`atomic_store[.scope][.semantics] %value, %memref[%i,...]`."""
    address, memory = _place(e, i.destination, i.indices)
    number = e.number(i.value)

    def one(lane: Parts) -> Parts:
        store_scalar(e, lane[0], memory, lane[1:], i.semantics)
        return ()

    if not isinstance(address.type, VectorType) and not number.is_varying:
        if e.item is not None:
            threads.once(e, [], lambda: one((address, *number.parts)))
            return
        store_scalar(e, address, memory, number.parts, i.semantics)
        return
    for_each_active(e, [address, *number.parts], [], one)


def atomic_update(e: Emitter, i: AtomicUpdate) -> None:
    """`%old = atomic_add[.scope][.semantics] %value, %memref[%i,...] : type`."""
    address, memory = _place(e, i.destination, i.indices)
    type_ = memory.element
    number = e.number(i.value)
    is_shared = not isinstance(address.type, VectorType)
    if e.subgroup is None:
        parts = _once(e, type_, lambda: update_scalar(e, i.op, address, memory, number.parts, i.semantics))
    elif is_shared and type_.kind == "int":
        parts = _updated_together(e, i, address, memory, vary(e, number))
    else:
        parts = for_each_active(
            e,
            [address, *number.parts],
            _part_types(type_),
            lambda lane: update_scalar(e, i.op, lane[0], memory, lane[1:], i.semantics),
        )
    e.bind(i.result, Number(type_, parts))


def _updated_together(e: Emitter, i: AtomicUpdate, address: Value, memory: MemrefType, number: Number) -> Parts:
    """One update with the operands of all active work-items; each gets the old value as if they had run in order."""
    total = reduce_subgroup(e, i.op, number)
    old = _once(e, number.type, lambda: update_scalar(e, i.op, address, memory, total.parts, i.semantics))
    before = scan_subgroup(e, "exclusive_scan", i.op, number)
    return binary(e, i.op, number.type, (splat(e, old[0]),), before.parts)


def _place(e: Emitter, name: Name, indices: tuple[Name, ...]) -> tuple[Value, MemrefType]:
    memref = e.memref(name)
    return element_address(e, memref, indices), memref.type


def _part_types(type_: ScalarType) -> list[Type]:
    return [register_type(type_)] * (2 if type_.kind == "complex" else 1)
