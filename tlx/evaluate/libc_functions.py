"""C library functions that code may call: heap, memory, mathematics."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from tlx.diagnostics import EvaluationError
from tlx.evaluate.float_functions import FLOATS
from tlx.evaluate.memory import Memory
from tlx.evaluate.memory_functions import copy, fill
from tlx.evaluate.site import CallSite, Factory, Run, Table, plain
from tlx.evaluate.values import Value


def _with_memory(function: Callable[..., Any]) -> Factory:
    def make(site: CallSite) -> Run:
        memory = site.context.memory
        return lambda *args: function(memory, *args)

    return make


def _allocate(memory: Memory, size: int, align: int = 16) -> int:
    return memory.allocate(size, f"heap block of {size} bytes", align).base


def _allocate_zeros(memory: Memory, count: int, size: int) -> int:
    address = _allocate(memory, count * size)
    fill(memory, address, 0, count * size)
    return address


def _allocate_aligned(memory: Memory, align: int, size: int) -> int:
    if align & (align - 1) or align == 0:
        raise EvaluationError(f"aligned_alloc with alignment {align}, which is no power of two")
    return _allocate(memory, size, align)


def _allocate_into(memory: Memory, place: int, align: int, size: int) -> int:
    memory.write(place, _allocate_aligned(memory, align, size).to_bytes(8, "little"), "posix_memalign")
    return 0


def _free(memory: Memory, address: int) -> None:
    if address == 0:
        return
    region = memory.nearest(address)
    if region is None or region.base != address or not region.label.startswith("heap block"):
        raise EvaluationError(f"free of {address:#x}, which is not the start of a heap block")
    if region.death:
        raise EvaluationError(f"free of {address:#x}: {region.label} {region.death} before")
    memory.release(region, "was freed")


def _reallocate(memory: Memory, address: int, size: int) -> int:
    new = _allocate(memory, size)
    if address:
        old = memory.nearest(address)
        kept = min(size, old.size if old else 0)
        memory.write(new, memory.read(address, kept, "realloc"), "realloc")
        _free(memory, address)
    return new


def _copy(memory: Memory, target: int, source: int, size: int) -> int:
    copy(memory, target, source, size, may_overlap=False)
    return target


def _move(memory: Memory, target: int, source: int, size: int) -> int:
    copy(memory, target, source, size, may_overlap=True)
    return target


def _set(memory: Memory, target: int, byte: int, size: int) -> int:
    fill(memory, target, byte, size)
    return target


def _stop(*_: Value) -> None:
    raise EvaluationError("the program called abort")


_MATHEMATICS: Final = {
    **{name: name for name in "sqrt floor ceil trunc rint nearbyint round copysign fma pow".split()},
    **{name: name for name in "exp exp2 log log2 log10 sin cos tan sinh cosh tanh asin acos atan atan2".split()},
    "fabs": "fabs",
    "fmin": "minnum",
    "fmax": "maxnum",
}

LIBRARY: Final[Table] = {
    "malloc": _with_memory(_allocate),
    "calloc": _with_memory(_allocate_zeros),
    "realloc": _with_memory(_reallocate),
    "aligned_alloc": _with_memory(_allocate_aligned),
    "posix_memalign": _with_memory(_allocate_into),
    "free": _with_memory(_free),
    "memcpy": _with_memory(_copy),
    "memmove": _with_memory(_move),
    "memset": _with_memory(_set),
    "abort": plain(_stop),
    "__assert_fail": plain(_stop),
    **{name: FLOATS[entry] for name, entry in _MATHEMATICS.items()},
    **{f"{name}f": FLOATS[entry] for name, entry in _MATHEMATICS.items()},
}
