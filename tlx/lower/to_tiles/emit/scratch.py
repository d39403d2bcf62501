"""The working memory of a kernel: its packed panels, partial results and other buffers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from tlx.ir.builder.instructions import Builder
from tlx.ir.types import I8, I64, ArrayType, Type, bytes_of
from tlx.ir.values import Value, const_int
from tlx.lower.memory.allocation import (
    CACHE_LINE,
    buffer_metadata,
    emit_allocation,
    emit_release,
    frame_metadata,
    trap_if_null,
)

STACK_LIMIT: Final = 32 << 10
"""Bytes up to which working memory is on the stack."""


@dataclass(eq=False, slots=True)
class Buffer:
    """Memory of a kernel.

    Attributes:
        address: Its first element; None until the scratch memory that it is part of is allocated.
    """

    address: Value | None = None

    @property
    def pointer(self) -> Value:
        """Its first element."""
        assert self.address is not None
        return self.address


@dataclass(eq=False)
class Scratch:
    """Working memory of a kernel: one 64-byte aligned block for all its buffers.

    `reserve` adds a buffer, `allocate` makes the block, and `release` frees it.

    Attributes:
        size: Bytes reserved so far.
        joins: Whether the memory planner may have callers provide heap memory; else it is a frame.
        provided: Memory of the caller to use instead: aligned, with at least `size` bytes.
    """

    size: int = 0
    joins: bool = True
    provided: Value | None = None
    _buffers: list[tuple[Buffer, int, Type]] = field(default_factory=list[tuple[Buffer, int, Type]])
    _block: Value | None = None

    def reserve(self, element: Type, count: int) -> Buffer:
        """Reserve a buffer of `count` elements, which has an address once memory is allocated."""
        buffer = Buffer()
        self._buffers.append((buffer, self.size, element))
        self.size += -(-count * bytes_of(element) // CACHE_LINE) * CACHE_LINE
        return buffer

    def allocate(self, b: Builder) -> None:
        """Allocate all reserved buffers."""
        if not self._buffers:
            return
        if self.provided is not None:
            base = self.provided
        elif self.size <= STACK_LIMIT:
            base: Value = b.retype(b.alloca(ArrayType(self.size, I8), "scratch", CACHE_LINE), I8)
        else:
            mark = buffer_metadata() if self.joins else frame_metadata()
            self._block = emit_allocation(b, const_int(I64, self.size + CACHE_LINE), "scratch.heap", mark)
            trap_if_null(b, [self._block])
            base = b.at_boundary(self._block, CACHE_LINE)
        for buffer, offset, element in self._buffers:
            buffer.address = b.retype(b.gep(I8, base, offset), element)

    def release(self, b: Builder) -> None:
        """Free heap memory."""
        if self._block is not None:
            emit_release(b, self._block, "" if self.joins else frame_metadata())
