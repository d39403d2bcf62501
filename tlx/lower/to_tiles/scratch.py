"""Working memory of kernels: one block for all packed panels of a kernel, 64-byte aligned, freed at the end."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from tlx.ir.builder.instructions import Builder
from tlx.ir.types import I8, I64, VOID, ArrayType, PointerType, Type, bytes_of
from tlx.ir.values import Keyword, Value, const_int
from tlx.lower.context import buffer_metadata
from tlx.lower.to_tiles.select.caches import LINE

STACK_LIMIT: Final = 32 << 10


@dataclass(eq=False)
class Scratch:
    """Asks for buffers first (`reserve`), then makes them (`allocate`); `release` ends their life.

    Attributes:
        size: Bytes reserved so far.
        joins: Whether `tlx.lower.memory.planner` may place what comes from the heap.
        given: Memory of somebody else that the buffers are made in, aligned, and as large as `size` says in the end.
    """

    size: int = 0
    joins: bool = True
    given: Value | None = None
    _offsets: list[tuple[int, Type]] = field(default_factory=list[tuple[int, Type]])
    _block: Value | None = None

    def reserve(self, element: Type, count: int) -> int:
        """Note a buffer of `count` elements; returns its number."""
        self._offsets.append((self.size, element))
        self.size += -(-count * bytes_of(element) // LINE) * LINE
        return len(self._offsets) - 1

    def allocate(self, b: Builder) -> list[Value]:
        """Make all reserved buffers; returns a pointer to each."""
        if not self._offsets:
            return []
        if self.given is not None:
            base = self.given
        elif self.size <= STACK_LIMIT:
            base: Value = b.retype(b.alloca(ArrayType(self.size, I8), "scratch", LINE), I8)
        else:
            base = self._from_heap(b)
        return [b.retype(b.gep(I8, base, offset), element) for offset, element in self._offsets]

    def _from_heap(self, b: Builder) -> Value:
        pointer = b.pointer(I8)
        call = b.call_named("malloc", pointer, [const_int(I64, self.size + LINE)], "scratch.heap")
        if self.joins:
            call.text, call.trailer = call.text + buffer_metadata(), buffer_metadata()
        self._block = call.value
        failed = b.icmp("eq", self._block, Keyword(pointer, "null"))
        before = b.block
        ready = b.new_block("scratch.ready", before)
        trap = b.new_block("scratch.failed", ready)
        b.branch_if(failed, trap, ready)
        b.at_end(trap)
        b.call_named("llvm.trap", VOID, [])
        b.emit("unreachable", VOID, [], "unreachable")
        b.at_end(ready)
        address = b.cast("ptrtoint", self._block, I64)
        return b.gep(I8, self._block, b.binary("and", b.sub(const_int(I64, 0), address), const_int(I64, LINE - 1)))

    def release(self, b: Builder) -> None:
        """Free what came from the heap."""
        if self._block is not None:
            assert isinstance(self._block.type, PointerType)
            b.call_named("free", VOID, [self._block])
