"""`insertelement` into a large vector: the vector copied, and the element stored over its own.

The copy is left out where both share a buffer (`coalescing`), or where the vector is undefined. Rewrite::

    %w = insertelement <6400 x float> %v, float %x, i64 %i
    ->
    call void @llvm.memcpy(ptr %w.buf, ptr %v.buf, ...)
    %in = icmp ult i64 %i, 6400                         ; what is inserted elsewhere makes any vector right
    %at = select i1 %in, i64 %i, i64 0
    store float %x, ptr (%w.buf + %at)

A choice between a vector with elements inserted, and itself, becomes a choice of these elements::

    %w = insertelement <6400 x float> %v, float %x, i64 %i
    %r = select i1 %c, <6400 x float> %w, <6400 x float> %v
    ->
    %e = extractelement <6400 x float> %v, i64 %i
    %y = select i1 %c, float %x, float %e
    %r = insertelement <6400 x float> %v, float %y, i64 %i
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tlx.ir.module import Function, Instruction, Module
from tlx.ir.rewriter import Use, definitions, uses
from tlx.ir.tensor_builder import TensorBuilder
from tlx.ir.tensors import TensorOp
from tlx.ir.types import I1, I64, IntType, bits_of, bytes_of
from tlx.ir.values import ConstInt, Local, Value, is_undefined
from tlx.lower.to_2d.copies import as_stored, copy, fill_zero
from tlx.lower.to_2d.elementwise import INSERT, is_large
from tlx.lower.to_2d.plan import Plan
from tlx.lower.to_2d.views import View


def lower_insert(plan: Plan, b: TensorBuilder, op: TensorOp, target: View) -> None:
    """Write the operand to `target`, then the element at its position."""
    (source,) = plan.operands(op)
    if source is not None and not source.is_same(target):
        copy(b, source, target)
    elif source is None and not is_undefined(plan.flats.root(op.tensors[0].source)):
        fill_zero(b, target)
    element, index = op.scalars
    address = b.gep(target.element, target.place.pointer, position(b, index, target.sizes[0]), "position")
    b.store(as_stored(b, element), address, bytes_of(target.element))


def insert_chosen(module: Module, function: Function) -> None:
    """Turn choices between a large vector with elements inserted, and the vector itself, into insertions."""
    selects = [
        (block, i)
        for block in function.blocks
        for i in block.instructions
        if i.opcode == "select" and is_large(i.type) and i.operands[0].type == I1
    ]
    known, used = (definitions(function), uses(function)) if selects else ({}, {})
    for block, select in selects:
        for inserted, vector in (select.operands[1:], select.operands[:0:-1]):
            chain = _inserts(inserted, vector, known, used)
            if chain:
                b = TensorBuilder(module, function, block, block.instructions.index(select))
                b.debug, b.span = select.debug_location, select.span
                _insert_chosen(b, select, chain, inserted_first=inserted == select.operands[1])
                break


def _inserts(
    inserted: Value, vector: Value, known: Mapping[str, Instruction], used: Mapping[str, Sequence[Use]]
) -> list[Instruction]:
    """The insertions between a vector and another one that only one instruction uses; none if there are others."""
    found: list[Instruction] = []
    while isinstance(inserted, Local) and inserted != vector:
        insert = known.get(inserted.name)
        if insert is None or insert.opcode != INSERT or len(used[inserted.name]) != 1:
            return []
        found.insert(0, insert)
        inserted = insert.operands[0]
    return found if inserted == vector else []


def _insert_chosen(
    b: TensorBuilder, select: Instruction, inserts: Sequence[Instruction], *, inserted_first: bool
) -> None:
    """Write the insertions where the choice was, which gives the last one its name."""
    condition, vector = select.operands[0], inserts[0].operands[0]
    for insert in inserts:
        _, element, index = insert.operands
        if not isinstance(index, ConstInt):  # it may be poison where the vector without the element is chosen
            index = b.value("freeze", index.type, [index], f"freeze {index.typed}", "at")
        old = b.value(
            "extractelement", element.type, [vector, index], f"extractelement {vector.typed}, {index.typed}", "old"
        )
        chosen = b.select(condition, *((element, old) if inserted_first else (old, element)), "chosen")
        body = f"insertelement {vector.typed}, {chosen.typed}, {index.typed}"
        vector = b.value(INSERT, vector.type, [vector, chosen, index], body, "inserted")
    last = b.block.instructions[b.index - 1]
    last.text = last.text.replace(f"%{last.result} =", f"%{select.result} =", 1)
    last.result = select.result
    del b.block.instructions[b.index]


def position(b: TensorBuilder, index: Value, count: int) -> Value:
    """The number of a vector's element, which is unsigned; 0 instead of one that the vector does not have."""
    if isinstance(index, ConstInt):
        return ConstInt(I64, index.unsigned if index.unsigned < count else 0)
    assert isinstance(index.type, IntType)
    wide = b.cast("zext" if bits_of(index.type) < bits_of(I64) else "trunc", index, I64)
    return b.select(b.icmp("ult", wide, count), wide, ConstInt(I64, 0), "position")
