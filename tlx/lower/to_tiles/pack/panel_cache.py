"""The panel cache: panels of B that a thread keeps from one job to the next.

Jobs of neighbouring rows use the same panels. A thread packs them for the first of these jobs, to memory of its own
that it allocates once:

    memory = malloc, held = none
    for each job, for each block of panels that it reads:
      call @K.part(args, rows, panels, memory, held == first panel)        packs unless the panels are there
      held = first panel
    free(memory)

A thread that steals jobs from threads with the same panels finds them packed, too; see `parallel.stealing`.

Without the cache, 1024 cubed takes this many times as long with 4, 8 and 16 threads (Xeon with AMX, 16 processors,
2026-11-23): bfloat 1.27, 1.08, 1.15, bytes 1.21, 1.05, 1.18. Vector kernels, which pack together in large teams, gain
nothing from it (float 0.99, 1.00, 1.01).
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from tlx.ir.builder.instructions import Builder
from tlx.ir.functions import Function
from tlx.ir.types import I8, I64
from tlx.ir.values import Value, const_int
from tlx.lower.to_tiles.emit.scratch import Scratch
from tlx.lower.to_tiles.parallel.partition import ParallelCost
from tlx.lower.to_tiles.parallel.tile_range import BOUND_PARAMETERS, PANEL_CACHE_PARAMETERS


@dataclass(frozen=True)
class PartialKernel:
    """A kernel that works on a part of its tiles.

    Attributes:
        kernel: Its last parameters are the bounds of the part, then, where it keeps panels, their memory and state.
        work: The cost and the tiles of the whole product.
        cache_bytes: Bytes of the panels that it keeps; 0 where it keeps none.
    """

    kernel: Function
    work: ParallelCost
    cache_bytes: int = 0

    @property
    def parameters(self) -> int:
        """The number of the kernel's parameters that the whole product has."""
        return (
            len(self.kernel.arguments) - len(BOUND_PARAMETERS) - (len(PANEL_CACHE_PARAMETERS) if self.work.keeps else 0)
        )


@dataclass(frozen=True)
class PanelCache:
    """The panels that a thread keeps.

    Attributes:
        memory: Their address.
        held: Address of the number of the first one.
    """

    memory: Value
    held: Value

    def arguments(self, b: Builder, first: Value) -> list[Value]:
        """A kernel's arguments after its bounds, for a block that begins with panel number `first`."""
        packed = b.cast("zext", b.icmp("eq", b.load(I64, self.held, 8), first), I64, "packed")
        b.store(first, self.held, 8)
        return [self.memory, packed]


@contextmanager
def panel_cache(b: Builder, cut: PartialKernel) -> Generator[PanelCache | None]:
    """Memory for a kernel's panels around the code emitted in this context; None where it keeps none."""
    if not cut.work.keeps:
        yield None
        return
    scratch = Scratch(joins=False)
    memory = scratch.reserve(I8, cut.cache_bytes)
    scratch.allocate(b)
    held = b.alloca(I64, "held")
    b.store(const_int(I64, -1), held, 8)
    yield PanelCache(memory.pointer, held)
    scratch.release(b)


def whole_product_arguments(cut: PartialKernel, kept: PanelCache | None) -> Sequence[Value]:
    """The arguments after a product's own with which a kernel computes all of it."""
    work = cut.work
    bounds = [const_int(I64, n) for n in (0, work.rows, 0, work.columns)]
    return [*bounds, *([kept.memory, const_int(I64, 0)] if kept else ())]
