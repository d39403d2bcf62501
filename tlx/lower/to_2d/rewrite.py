"""Rewriting: one pass over the function that keeps, removes or replaces each instruction."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import Final

from tlx.intrinsics.tensor_type import TensorType
from tlx.ir.instructions import Block, Instruction
from tlx.ir.tensors.builder import TensorBuilder
from tlx.ir.tensors.model import TensorOp
from tlx.ir.types import I1, I8, VectorType, bytes_of, exceeds_register
from tlx.ir.values import Keyword, Local, Value
from tlx.llvm.openmp import Threads
from tlx.lower.memory.aliases import MemoryLocation
from tlx.lower.memory.buffers import allow_heap
from tlx.lower.memory.views import Storage, TensorView
from tlx.lower.remarks import Remarks
from tlx.lower.to_2d.analysis.facts import Facts, store_view
from tlx.lower.to_2d.emission import RuleContext
from tlx.lower.to_2d.memory.copies import copy, copy_bytes, fill_zero, to_storage_type
from tlx.lower.to_2d.memory.phi_elimination import emit_edge_copies
from tlx.lower.to_2d.memory.placement import Placement
from tlx.lower.to_2d.memory.schedule import Schedule, SunkStore
from tlx.lower.to_2d.memory.store_sinking import remark_temporary, write_with_overlap_check
from tlx.lower.to_2d.rules import RULES
from tlx.lower.to_2d.rules.movement import clamped_index

_HEADS: Final = frozenset({"phi", "landingpad", "catchpad", "cleanuppad", "catchswitch", "#dbg"})


def rewrite(placement: Placement, threads: Threads, remarks: Remarks) -> None:
    """Rewrite a function.

    Args:
        placement: The memory of its tensors, and the decisions.
        threads: What runs large kernels on several threads.
        remarks: Receives remarks on copies and temporaries.
    """
    facts, schedule = placement.facts, placement.decisions.schedule
    b = TensorBuilder(facts.module, facts.function)
    memory = replace(schedule.operands, storage=_EmittedStorage(placement, b))
    context = RuleContext(facts.target, threads, remarks, placement.allocate, memory)
    _Rewriter(facts, schedule, placement, context, b).run()


@dataclass(frozen=True, eq=False)
class _EmittedStorage:
    """The memory of one function, whose parts have addresses that are computed where they are read.

    Attributes:
        placement: The memory.
        b: The builder.
    """

    placement: Placement
    b: TensorBuilder

    def of_vector(self, root: Value) -> Storage:
        """The memory of a flattened vector that no load defines."""
        return self.placement.of_vector(root)

    def of_load(self, load: Instruction, pointer: Value) -> Storage:
        """The user's memory, or the copy that is made when the load runs."""
        return self.placement.of_load(load, pointer)

    def addressed(self, view: TensorView) -> TensorView:
        """The view with the address of its first element."""
        if not view.offset:
            return view
        pointer = self.b.gep(view.element, view.storage.pointer, view.offset, "part")
        return replace(view, storage=replace(view.storage, pointer=pointer), offset=0)


@dataclass(eq=False)
class _Rewriter:
    """Rewrites one function.

    Attributes:
        facts: Its analyses.
        schedule: Which operations run, and where.
        placement: The memory of its tensors, and the decisions.
        context: The context of rules.
        b: The builder, after the last instruction that has been rewritten.
        pending_phis: Phis whose values are stored or loaded after the last phi of the block.
    """

    facts: Facts
    schedule: Schedule
    placement: Placement
    context: RuleContext
    b: TensorBuilder
    pending_phis: list[Instruction] = field(default_factory=list[Instruction])

    def run(self) -> None:
        """Rewrite the function."""
        function, buffers = self.facts.function, self.placement.buffers
        self._emit_entry()
        for block in list(function.blocks):
            self._block(block)
        buffers.block = ""
        emit_edge_copies(self.context.memory, self.schedule.live, self.context.allocate, self.b)
        _record_scopes(self.placement)
        buffers.emit()
        if buffers.uses_heap:
            allow_heap(self.facts.module, function)
        function.footer = re.sub(r"\n\s*uselistorder[^\n]*", "", function.footer)

    def _emit_entry(self) -> None:
        """Store constants and arguments that tensor operations read to their buffers."""
        entry = self.facts.function.entry
        index = next(i for i, inst in enumerate(entry.instructions) if inst.opcode != "alloca")
        self.b.block, self.b.index = entry, index
        for root, place in self.placement.vectors.items():
            if isinstance(root, Keyword):
                self.b.memset(place.pointer, 0, _bytes_of(root))
            elif isinstance(root, Local) and root.name not in self.facts.vectors.definitions:
                self._store_register(root)

    def _block(self, block: Block) -> None:
        pending = list(block.instructions)
        self.placement.buffers.block = block.name
        if block is not self.facts.function.entry:
            self.b.block, self.b.index = block, 0
        else:
            pending = pending[self.b.index :]
        for instruction in pending:
            assert self.b.block.instructions[self.b.index] is instruction
            if self.pending_phis and instruction.opcode not in _HEADS:
                self._emit_pending_phis()
            self.b.debug, self.b.span = instruction.debug_location, instruction.span
            self._instruction(instruction)

    # One instruction -------------------------------------------------------------------------------------------

    def _instruction(self, instruction: Instruction) -> None:
        facts = self.facts
        op = facts.tensors.op_of(instruction)
        if op is not None:
            self._remove()
            self._operation(op)
        elif instruction.result in facts.tensors.tokens:
            self._remove()
            self._snapshot(instruction)
        elif facts.vectors.is_memory_store(instruction):
            self._remove()
            self._vector_store(instruction)
        elif facts.vectors.is_memory_extract(instruction):
            self._remove()
            self._extract(instruction)
        elif instruction.result is not None and isinstance(instruction.type, VectorType):
            self._vector(instruction)
        else:
            self.b.index += 1

    def _remove(self) -> None:
        del self.b.block.instructions[self.b.index]

    def _vector(self, instruction: Instruction) -> None:
        """Rewrite an ordinary instruction whose result is a vector."""
        flats = self.facts.vectors
        name = str(instruction.result)
        kind = flats.kind(instruction.value)
        if flats.is_renaming(instruction):
            self._keep_if(flats.needs_ssa(name))
        elif kind == "load":
            self._keep_if(flats.needs_ssa(name) or not (flats.uses.get(name) or exceeds_register(instruction.type)))
            self._snapshot(instruction)
        elif kind == "phi":
            self.b.index += 1
            self.pending_phis.extend([instruction] if name in self.schedule.live and flats.needs_ssa(name) else [])
        else:
            self.b.index += 1
            if instruction.value in self.placement.vectors:
                self._register(instruction)

    def _keep_if(self, is_needed: bool) -> None:
        if is_needed:
            self.b.index += 1
        else:
            self._remove()

    def _register(self, instruction: Instruction) -> None:
        """Store a vector in a register that tensor operations read."""
        if instruction.opcode == "phi":
            self.pending_phis.append(instruction)
        else:
            self._store_register(instruction.value)

    def _emit_pending_phis(self) -> None:
        for phi in self.pending_phis:
            self.b.debug = ""
            if self.facts.vectors.kind(phi.value) == "phi":
                self._load_vector(phi)
            else:
                self._store_register(phi.value)
        self.pending_phis = []

    def _store_register(self, value: Local) -> None:
        place = self.placement.vectors[value]
        assert place.buffer is not None
        self.b.store(to_storage_type(self.b, value), place.pointer, place.buffer.align)

    def _load_vector(self, instruction: Instruction) -> None:
        """Emit `%name = load <E x T>, ptr %name.buf` for the ordinary instructions that use the vector."""
        place = self.context.memory.storage_of(instruction.value)
        assert place.buffer is not None
        assert isinstance(instruction.type, VectorType)
        if instruction.type.element == I1:
            stored = self.b.load(VectorType(instruction.type.count, I8), place.pointer, place.buffer.align)
            self._define(instruction, "trunc", [stored], f"trunc {stored.typed} to {instruction.type}")
            return
        pointer = self.b.retype(place.pointer, instruction.type)
        body = f"load {instruction.type}, {pointer.typed}, align {place.buffer.align}"
        self._define(instruction, "load", [pointer], body)

    def _define(self, instruction: Instruction, opcode: str, operands: list[Value], body: str) -> None:
        """Give a result a new definition."""
        text = f"%{instruction.result} = {body}"
        new = Instruction(opcode, instruction.type, operands, text, result=instruction.result)
        self.b.block.instructions.insert(self.b.index, new)
        self.b.index += 1

    # Tensor operations -----------------------------------------------------------------------------------------

    def _operation(self, op: TensorOp) -> None:
        if op.pointer is not None:
            self._tensor_store(op)
            return
        if not self.schedule.has_buffer(op):
            return
        assert op.result is not None
        part = self.schedule.parts.get(id(op.instruction))
        if part is not None:
            destination = self.context.memory.place(part)
            assert destination is not None
            RULES[op.intrinsic.name](self.context, self.b, op, destination)
            return
        place = self.context.memory.storage_of(op.instruction.value)
        is_coalesced = op.instruction.value in self.placement.decisions.coalesced
        if not is_coalesced and id(op.instruction) not in self.schedule.sunk_stores.explained:
            remark_temporary(self.context.remarks, op, "its result has uses other than one store")
        if op.result.is_padded:
            self.b.memset(place.pointer, 0, _bytes_of(op.instruction.value))
        RULES[op.intrinsic.name](self.context, self.b, op, self.context.memory.result_view(op))
        if self.facts.vectors.needs_ssa(str(op.instruction.result)):
            self._load_vector(op.instruction)

    def _sunk(self, sunk: SunkStore) -> None:
        """Emit an operation that writes directly to where its result is stored."""
        self.b.debug = sunk.op.instruction.debug_location or self.b.debug
        self.b.span = sunk.op.instruction.span
        snapshots = self.placement.decisions.snapshots
        overlaps = tuple(view for view in sunk.possible_overlaps if id(view.storage.load) not in snapshots)

        def emit(destination: TensorView) -> None:
            self._sunk_parts(sunk)
            if sunk.writes_padding:
                self.b.memset(destination.storage.pointer, 0, _bytes_of(sunk.op.instruction.value))
            RULES[sunk.op.intrinsic.name](self.context, self.b, sunk.op, destination)

        write_with_overlap_check(self.context, self.b, replace(sunk, possible_overlaps=overlaps), emit)

    def _sunk_parts(self, sunk: SunkStore) -> None:
        """Emit the operands of a concatenation that write directly to where it is stored."""
        for part in sunk.parts:
            self._sunk_parts(part)
            RULES[part.op.intrinsic.name](
                self.context, self.b, part.op, self.context.memory.storage.addressed(part.destination)
            )

    def _tensor_store(self, op: TensorOp) -> None:
        sunk = self.schedule.sunk_stores.by_store.get(id(op.instruction))
        if sunk is not None:
            self._sunk(sunk)
            return
        destination = store_view(op)
        (source,) = self.context.memory.operands(op)
        if source is None:
            fill_zero(self.b, destination)
        else:
            self._copy(source, destination, op.instruction)

    def _copy(self, source: TensorView, destination: TensorView, instruction: Instruction) -> None:
        if source.aliases_exactly(destination):
            return
        if not source.storage.is_private and not self.facts.aliases.disjoint(
            MemoryLocation.of(source), MemoryLocation.of(destination)
        ):
            message = f"copied twice, because {destination.storage.pointer} may alias {source.storage.pointer}"
            self.context.remark_missed(message, instruction.span)
            shape = source.data_shape
            dense = TensorType.dense(source.element, shape)
            place = self.context.allocate(source.element, dense.count, "copy")
            between = TensorView(place, source.element, shape, shape, dense.strides(), source.layout)
            copy(self.b, source, between)
            source = between
        copy(self.b, source, destination)

    # Vectors in memory -----------------------------------------------------------------------------------------

    def _snapshot(self, instruction: Instruction) -> None:
        """Copy the memory that a load reads, if it changes before its last use."""
        snapshot = self.placement.decisions.snapshots.get(id(instruction))
        if snapshot is None:
            return
        source = snapshot.source
        tensor = self.facts.tensors.tokens.get(instruction.result or "")
        destination = self.context.memory.view(tensor) if tensor is not None and tensor.kind == "load" else None
        if destination is None:
            place = self.placement.loads[id(instruction)]
            destination = TensorView(
                place, source.element, source.shape, source.data_shape, source.strides, source.layout
            )
        copy(self.b, source, destination)

    def _vector_store(self, store: Instruction) -> None:
        """Rewrite a `store <E x T>` of a vector that lives in memory."""
        sunk = self.schedule.sunk_stores.by_store.get(id(store))
        value, pointer = store.operands[:2]
        root = self.facts.vectors.root(value)
        if sunk is not None:
            self._sunk(sunk)
        elif isinstance(root, Keyword):
            if root.word == "zeroinitializer":
                self.b.memset(pointer, 0, _bytes_of(value))
        else:
            place = self.context.memory.storage_of(root)
            if place.pointer != pointer:
                copy_bytes(self.b, place.pointer, pointer, _bytes_of(value), overlap=self._may_overlap(place, store))

    def _may_overlap(self, place: Storage, store: Instruction) -> bool:
        if place.is_private:
            return False
        size = _bytes_of(store.operands[0])
        return not self.facts.aliases.disjoint(
            MemoryLocation(place.pointer, size), MemoryLocation(store.operands[1], size)
        )

    def _extract(self, instruction: Instruction) -> None:
        """Rewrite an `extractelement` of a large vector as a load; an index out of bounds is clamped."""
        vector, index = instruction.operands[:2]
        place = self.context.memory.storage_of(self.facts.vectors.root(vector))
        element = instruction.type
        assert isinstance(vector.type, VectorType)
        pointer = self.b.gep(element, place.pointer, clamped_index(self.b, index, vector.type.count))
        self._define(instruction, "load", [pointer], f"load {element}, {pointer.typed}, align {bytes_of(element)}")


def _bytes_of(value: Value) -> int:
    assert isinstance(value.type, VectorType)
    return value.type.count * bytes_of(value.type.element)


def _record_scopes(placement: Placement) -> None:
    """Record the block of each buffer that only one block writes: the buffer's lifetime begins there."""
    facts, schedule = placement.facts, placement.decisions.schedule
    blocks: dict[str, set[str]] = {}
    for root, place in placement.vectors.items():
        if place.buffer is not None:
            op = facts.op_of(root) if isinstance(root, Local) and facts.vectors.kind(root) == "op" else None
            block = schedule.position_of(op)[0] if op is not None else ""
            blocks.setdefault(place.buffer.pointer.name, set()).add(block)
    placement.buffers.scopes |= {name: writers.pop() if len(writers) == 1 else "" for name, writers in blocks.items()}
