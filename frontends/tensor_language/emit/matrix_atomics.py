"""Atomic loads, stores and updates of cooperative matrices: one scalar after the other, atomic each for itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tlx.frontends.tensor_language.ast.spmd import (
    CooperativeMatrixAtomicUpdate,
    CooperativeMatrixLoad,
    CooperativeMatrixStore,
)
from tlx.frontends.tensor_language.emit import atomics, matrix_memory
from tlx.frontends.tensor_language.emit.addresses import address_of
from tlx.frontends.tensor_language.emit.branches import all_of, run_if
from tlx.frontends.tensor_language.emit.emitter import Emitter
from tlx.frontends.tensor_language.emit.matrices import matrix_type
from tlx.frontends.tensor_language.emit.matrix_buffer import Buffer, new_buffer, read, reloaded, spilled, write
from tlx.frontends.tensor_language.emit.matrix_memory import Window, window
from tlx.ir.values import Value

Entry = Callable[[Value, Value], None]  # given the address in the memref and the offset in the buffer


def load(e: Emitter, i: CooperativeMatrixLoad) -> None:
    """`%r = cooperative_matrix_load %memref[%x,%y] : type`, or its atomic form."""
    if not i.atomic:
        matrix_memory.load(e, i)
        return
    where = window(e, i, i.source)
    buffer = _zeros(e, new_buffer(e, matrix_type(i), by_rows=where.by_rows), where)

    def entry(address: Value, offset: Value) -> None:
        write(e, buffer, offset, atomics.load(e, address, where.memref.type, i.semantics))

    _each_entry(e, where, buffer, entry)
    e.bind(i.result, reloaded(e, buffer))


def store(e: Emitter, i: CooperativeMatrixStore) -> None:
    """`cooperative_matrix_store %matrix, %memref[%x,%y]`, or its atomic form."""
    if not i.atomic:
        matrix_memory.store(e, i)
        return
    where = window(e, i, i.target)
    buffer = spilled(e, e.matrix(i.matrix), by_rows=where.by_rows)

    def entry(address: Value, offset: Value) -> None:
        atomics.store(e, address, where.memref.type, read(e, buffer, offset), i.semantics)

    _each_entry(e, where, buffer, entry)


def update(e: Emitter, i: CooperativeMatrixAtomicUpdate) -> None:
    """`%old = cooperative_matrix_atomic_add %matrix, %memref[%x,%y] : type`; zeros where nothing is updated."""
    where = window(e, i, i.target)
    source = spilled(e, e.matrix(i.matrix), by_rows=where.by_rows)
    target = _zeros(e, new_buffer(e, matrix_type(i), by_rows=where.by_rows), where)

    def entry(address: Value, offset: Value) -> None:
        parts = read(e, source, offset)
        write(e, target, offset, atomics.update(e, i.op, address, where.memref.type, parts, i.semantics))

    _each_entry(e, where, source, entry)
    e.bind(i.result, reloaded(e, target))


def _each_entry(e: Emitter, where: Window, buffer: Buffer, entry: Entry) -> None:
    """Do something for each entry that is inside of the memref."""
    b = e.b
    with b.loop(0, buffer.lines, name="line") as line, b.loop(0, buffer.length, name="entry") as number:
        x, y = b.add(where.x, number.index), b.add(where.y, line.index)
        with run_if(e, _inside(e, where, x, y), "inside", "done"):
            address = address_of(e, where.memref, [x, y])
            entry(address, b.add(b.mul(line.index, buffer.length), number.index))


def _inside(e: Emitter, where: Window, x: Value, y: Value) -> Value | None:
    """Whether an entry is inside of the memref; None where that is not checked."""
    conditions: list[Value] = []
    if where.checks_line:
        conditions.append(e.b.icmp("ult", x, where.memref.shape[0]))
    if where.checks_lines:
        conditions.append(e.b.icmp("ult", y, where.memref.shape[1]))
    return all_of(e, conditions) if conditions else None


def _zeros(e: Emitter, buffer: Buffer, where: Window) -> Buffer:
    """A buffer made zero where not all of it is going to be written."""
    if where.is_checked:
        size = buffer.type.rows * buffer.type.columns * buffer.type.component.part.size
        for pointer in buffer.pointers:
            e.b.memset(pointer, 0, size)
    return buffer


RULES: Final = {
    CooperativeMatrixLoad: load,
    CooperativeMatrixStore: store,
    CooperativeMatrixAtomicUpdate: update,
}
