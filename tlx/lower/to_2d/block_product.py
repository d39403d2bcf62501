"""One product of a contraction's blocks: 2-D loads of its operands, and the operation on them."""

from __future__ import annotations

from dataclasses import dataclass

from tlx.ir.tensor_builder import TensorBuilder
from tlx.ir.types import VectorType
from tlx.ir.values import Local, Value, zero
from tlx.lower.to_2d.blocking import block_view
from tlx.lower.to_2d.contraction import ACC, LHS, RHS, Contraction, Memory
from tlx.lower.to_2d.loops import Walk
from tlx.lower.to_2d.operand_copies import Nest
from tlx.lower.to_2d.views import Dim, matrix
from tlx.lower.to_2d.vnni import STRIPS, VNNI
from tlx.types import TensorType


@dataclass(frozen=True)
class BlockProduct:
    """Emits products of blocks.

    Attributes:
        b: Where.
        c: The contraction, whose operands are ready.
        nest: Its dimensions: those of a block, and those that are loops.
    """

    b: TensorBuilder
    c: Contraction
    nest: Nest

    def accumulator(self, memory: Memory, offsets: dict[int, Value], out: Value) -> Local:
        """The sums that a block's products are added to; the result's, from `out` on, where that is where they are."""
        same = memory.pointer == self.c.out.pointer
        pointer = out if same else self.b.gep(memory.element, memory.pointer, offsets[ACC], "acc.ptr")
        return self._load(Memory(pointer, memory.element), ACC, self.nest.m, self.nest.n, "acc")

    def product(self, kind: str, acc: Local | None, lhs: Value, rhs: Value, type_: TensorType) -> Local:
        """The product of the blocks of lhs and rhs from two addresses on, added to `acc`."""
        m, k = self.nest.m, self.nest.k
        first = self._load(Memory(lhs, self.c.lhs.element), LHS, m, k, "lhs")
        second = self._rhs(self.c.rhs._replace(pointer=rhs))
        if acc is None and kind == "matmul":
            return self.b.matmul(first, second, type_)
        acc = acc or self.b.typeinfo(zero(type_.vector), type_, "zeros")
        return self.b.mma(kind, acc, first, second, type_)

    def _rhs(self, memory: Memory) -> Local:
        """The right operand; interleaved rows are permuted back by what reads them."""
        (depth, steps), (cols, _) = self.nest.k, self.nest.n
        if memory.group == 1:
            return self._load(memory, RHS, self.nest.k, self.nest.n, "rhs")
        room = max(cols, memory.room)
        if memory.strip:
            return self._strips(memory, depth, cols)
        shape = (depth // memory.group, room, memory.group)
        there = TensorType(memory.element, shape, (0, 1, 2), (0, room - cols, 0))
        pitches = None if steps[RHS] == room else (0, steps[RHS], memory.group)
        packed = self.b.tensor_load(memory.pointer, there, pitches, "rhs.vnni")
        type_ = TensorType.dense(memory.element, (depth, cols))
        return self.b.typeinfo(self.b.reshape_permute(packed, VNNI, (depth, cols), type_), type_, "rhs")

    def _strips(self, memory: Memory, depth: int, cols: int) -> Local:
        """The right operand in strips of interleaved rows; columns behind the last one are padding."""
        room, element = memory.room, memory.element
        shape = (room // memory.strip, depth // memory.group, memory.strip, memory.group)
        packed = self.b.tensor_load(memory.pointer, TensorType.dense(element, shape), None, "rhs.strips")
        flat = VectorType(depth * room, element)
        whole = self.b.reshape_permute(packed, STRIPS, (depth, room), flat)
        return self.b.typeinfo(whole, TensorType(element, (depth, room), (0, 1), (0, room - cols)), "rhs")

    def _load(self, memory: Memory, column: int, rows: Walk, cols: Walk, name: str) -> Local:
        dims = [Dim(extent, strides[column]) for extent, strides in (rows, cols)]
        found = matrix(block_view(memory, *dims))
        assert found is not None
        return self.b.tensor_load(memory.pointer, found.type, (0, found.pitch), name)
