"""Packing hoisted out of loops: B packed once for all the products of a loop.

One kernel packs, before the loop, and another one multiplies:

    for i: C[i] = A[i] @ B                    pack(panels, B)
                                       ->     for i: C[i] = A[i] @ panels

The iterations of the loop must be independent, and B's address the same in all of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import prod
from typing import Final

from tlx.ir.analysis.loops import FunctionLoops
from tlx.ir.builder.instructions import Builder
from tlx.ir.instructions import Block
from tlx.ir.module import Module
from tlx.ir.transform.rewrite import definitions
from tlx.ir.types import I8
from tlx.ir.values import Local, Value
from tlx.lower.memory.buffers import PrivateBuffers, allow_heap
from tlx.lower.to_tiles.match.batch_strides import BatchLoops

_ADDRESS_OPCODES: Final = ("getelementptr", "bitcast")
_WRITERS: Final = ("llvm.tensor.store", "llvm.memcpy", "llvm.memmove", "llvm.memset")
_ASSUMED_TRIPS: Final = 16  # iterations of a loop whose bound is not known


@dataclass(frozen=True)
class HoistPoint:
    """Where B can be packed.

    Attributes:
        block: The block at whose end it is packed.
        trips: How many times loops run the product for each time it is packed.
    """

    block: Block
    trips: int


@dataclass(eq=False)
class HoistPoints:
    """Finds where in a function B can be packed for more than one product, and allocates memory for it.

    Attributes:
        module: The module.
        loops: The loops of a function before any of its trees is replaced.
        pending: Code to insert, and the blocks at whose ends it is inserted.
    """

    module: Module
    loops: FunctionLoops
    pending: list[tuple[Block, Block]] = field(default_factory=list[tuple[Block, Block]])

    def __post_init__(self) -> None:
        self.function, self.flow = self.loops.function, self.loops.flow
        self.made = definitions(self.function)
        self.batch_loops = BatchLoops(self.module, self.loops)
        self.buffers = PrivateBuffers(self.module, self.function)

    def before(self, block: Block, pointer: Value) -> HoistPoint | None:
        """The end of the block before the outermost loop around `block` in which a pointer does not change."""
        around = self.loops.around(block)
        for level, loop in enumerate(around):
            is_fixed = not self._is_made_in(pointer, loop.blocks) and not self._is_written_in(pointer, loop.blocks)
            if is_fixed and loop.entry is not None:
                trips = prod(inner.trips if inner.trips > 1 else _ASSUMED_TRIPS for inner in around[level:])
                return HoistPoint(self.flow.blocks[loop.entry], trips)
        return None

    def _is_made_in(self, pointer: Value, blocks: frozenset[str]) -> bool:
        made = (i.result for name in blocks for i in self.flow.blocks[name].instructions)
        return isinstance(pointer, Local) and pointer.name in made

    def _is_written_in(self, pointer: Value, blocks: frozenset[str]) -> bool:
        """Whether iterations may write to the memory they read there, as a user's loop with its own buffer does."""
        base = self._base(pointer)
        return any(self._base(to) == base for name in blocks for to in _written_addresses(self.flow.blocks[name]))

    def _base(self, pointer: Value) -> str:
        """The name of a pointer's underlying object."""
        made = self.made.get(pointer.name) if isinstance(pointer, Local) else None
        return self._base(made.operands[0]) if made is not None and made.opcode in _ADDRESS_OPCODES else str(pointer)

    def memory(self, b: Builder, size: int) -> Value:
        """Memory for panels, as an address at the builder's insertion point."""
        return b.retype(self.buffers.new(I8, size, "panels").pointer, I8)

    def insert_at_end(self, block: Block, code: Block) -> None:
        """Add instructions to the end of a block; they are inserted once all trees are replaced."""
        self.pending.append((block, code))

    def finish(self) -> None:
        """Insert all code, and allocate the memory."""
        for block, code in self.pending:
            block.instructions[-1:-1] = code.instructions
        if self.buffers.made:
            self.buffers.emit()
            if self.buffers.uses_heap:
                allow_heap(self.module, self.function)


def _written_addresses(block: Block) -> Iterator[Value]:
    """The addresses that a block writes to."""
    for instruction in block.instructions:
        callee = str(instruction.callee) if instruction.is_call else ""
        if callee.startswith(_WRITERS):
            yield instruction.args[0]
        elif instruction.opcode == "store":
            yield instruction.operands[1]
