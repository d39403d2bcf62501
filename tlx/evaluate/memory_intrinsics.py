"""LLVM's intrinsics on memory: copies, lifetimes, assumptions about pointers, traps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tlx.diagnostics import EvaluationError
from tlx.evaluate.context import (
    CallSite,
    FunctionTable,
    Implementation,
    ImplementationFactory,
    first_argument,
    no_operation,
    type_independent,
)
from tlx.evaluate.memory import AddressSpace
from tlx.evaluate.values import RuntimeValue, signed, width_of


def copy_memory(memory: AddressSpace, target: int, source: int, size: int, *, may_overlap: bool) -> None:
    """`memcpy` and `memmove`.

    Raises:
        EvaluationError: An access is outside memory, or the two ranges of a memcpy overlap in part.
    """
    if not may_overlap and target != source and abs(target - source) < size:
        raise EvaluationError(f"memcpy of {size} bytes between overlapping ranges {target:#x} and {source:#x}")
    memory.write(target, memory.read(source, size, "memcpy"), "memcpy")


def fill_memory(memory: AddressSpace, target: int, byte: int, size: int) -> None:
    """`memset`."""
    if size:
        region = memory.writable(target, size, f"memset of {size} bytes")
        at = target - region.base
        region.data[at : at + size] = bytes([byte & 255]) * size


def _copy_memory(*, may_overlap: bool) -> ImplementationFactory:
    def make(site: CallSite) -> Implementation:
        memory = site.context.memory

        def run(target: int, source: int, size: int, *_: RuntimeValue) -> None:
            copy_memory(memory, target, source, size, may_overlap=may_overlap)

        return run

    return make


def _fill(site: CallSite) -> Implementation:
    memory = site.context.memory

    def run(target: int, byte: int, size: int, *_: RuntimeValue) -> None:
        fill_memory(memory, target, byte, size)

    return run


def _lifetime(change: Callable[[AddressSpace, int], None]) -> ImplementationFactory:
    def make(site: CallSite) -> Implementation:
        memory = site.context.memory
        return lambda *args: change(memory, args[-1])

    return make


def _begin(memory: AddressSpace, address: int) -> None:
    region = memory.nearest(address)
    if region is not None and region.base == address and region.data.nbytes == region.size:
        region.revive(memory.undefined)


def _end(memory: AddressSpace, address: int) -> None:
    region = memory.nearest(address)
    if region is not None and region.base == address and not region.death:
        region.kill("is dead after llvm.lifetime.end")


def _assume(condition: RuntimeValue, *_: RuntimeValue) -> None:
    if not condition:
        raise EvaluationError("llvm.assume of what is false")


def _trap(*_: RuntimeValue) -> None:
    raise EvaluationError("reached llvm.trap")


def _object_size(site: CallSite) -> Implementation:
    unknown = (1 << width_of(site.result)) - 1

    def run(_pointer: int, smallest: int, *_: RuntimeValue) -> int:
        return 0 if smallest else unknown

    return run


def _mask_pointer(address: int, mask: int) -> int:
    return address & mask


def _load_relative(site: CallSite) -> Implementation:
    """`llvm.load.relative`: `base` plus the 32-bit distance that lies at `base + offset`."""
    memory = site.context.memory

    def run(base: int, offset: int) -> int:
        data = memory.read(base + signed(offset, width_of(site.arguments[1])), 4, "llvm.load.relative")
        return base + int.from_bytes(data, "little", signed=True)

    return run


MEMORY_INTRINSICS: Final[FunctionTable] = {
    "memcpy": _copy_memory(may_overlap=False),
    "memcpy.inline": _copy_memory(may_overlap=False),
    "memmove": _copy_memory(may_overlap=True),
    "memset": _fill,
    "memset.inline": _fill,
    "lifetime.start": _lifetime(_begin),
    "lifetime.end": _lifetime(_end),
    "invariant.start": type_independent(lambda *_: 0),
    "invariant.end": type_independent(no_operation),
    "launder.invariant.group": type_independent(first_argument),
    "strip.invariant.group": type_independent(first_argument),
    "ptr.annotation": type_independent(first_argument),
    "ptrmask": type_independent(_mask_pointer),
    "threadlocal.address": type_independent(first_argument),
    "prefetch": type_independent(no_operation),
    "assume": type_independent(_assume),
    "trap": type_independent(_trap),
    "debugtrap": type_independent(_trap),
    "ubsantrap": type_independent(_trap),
    "objectsize": _object_size,
    "load.relative": _load_relative,
}
