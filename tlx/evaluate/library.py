"""Library functions that programs call: C, OpenMP, and POSIX threads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from tlx.diagnostics import EvaluationError
from tlx.evaluate.context import (
    CallSite,
    FunctionTable,
    Implementation,
    ImplementationFactory,
    type_independent,
)
from tlx.evaluate.memory import AddressSpace
from tlx.evaluate.memory_access import copy_memory, fill_memory
from tlx.evaluate.scalars import FLOAT_INTRINSICS
from tlx.evaluate.teams import ThreadTeam
from tlx.evaluate.values import RuntimeValue
from tlx.ir.builder import GOMP_PARALLEL, SCHED_YIELD


def _with_memory(function: Callable[..., Any]) -> ImplementationFactory:
    def make(site: CallSite) -> Implementation:
        memory = site.context.memory
        return lambda *args: function(memory, *args)

    return make


def _allocate(memory: AddressSpace, size: int, align: int = 16) -> int:
    return memory.allocate(size, f"heap block of {size} bytes", align).base


def _allocate_zeros(memory: AddressSpace, count: int, size: int) -> int:
    address = _allocate(memory, count * size)
    fill_memory(memory, address, 0, count * size)
    return address


def _allocate_aligned(memory: AddressSpace, align: int, size: int) -> int:
    if align & (align - 1) or align == 0:
        raise EvaluationError(f"aligned_alloc with alignment {align}, which is not a power of two")
    return _allocate(memory, size, align)


def _allocate_into(memory: AddressSpace, place: int, align: int, size: int) -> int:
    memory.write(place, _allocate_aligned(memory, align, size).to_bytes(8, "little"), "posix_memalign")
    return 0


def _free(memory: AddressSpace, address: int) -> None:
    if address == 0:
        return
    region = memory.nearest(address)
    if region is None or region.base != address or not region.label.startswith("heap block"):
        raise EvaluationError(f"free of {address:#x}, which is not the start of a heap block")
    if region.death:
        raise EvaluationError(f"free of {address:#x}: {region.label} {region.death} before")
    memory.release(region, "was freed")


def _reallocate(memory: AddressSpace, address: int, size: int) -> int:
    new = _allocate(memory, size)
    if address:
        old = memory.nearest(address)
        copied = min(size, old.size if old else 0)
        memory.write(new, memory.read(address, copied, "realloc"), "realloc")
        _free(memory, address)
    return new


def _copy(memory: AddressSpace, destination: int, source: int, size: int) -> int:
    copy_memory(memory, destination, source, size, may_overlap=False)
    return destination


def _move(memory: AddressSpace, destination: int, source: int, size: int) -> int:
    copy_memory(memory, destination, source, size, may_overlap=True)
    return destination


def _set(memory: AddressSpace, destination: int, byte: int, size: int) -> int:
    fill_memory(memory, destination, byte, size)
    return destination


def _stop(*_: RuntimeValue) -> None:
    raise EvaluationError("the program called abort")


_MATHEMATICS: Final = {
    **{name: name for name in "sqrt floor ceil trunc rint nearbyint round copysign fma pow".split()},
    **{name: name for name in "exp exp2 log log2 log10 sin cos tan sinh cosh tanh asin acos atan atan2".split()},
    "fabs": "fabs",
    "fmin": "minnum",
    "fmax": "maxnum",
}

C_LIBRARY: Final[FunctionTable] = {
    "malloc": _with_memory(_allocate),
    "calloc": _with_memory(_allocate_zeros),
    "realloc": _with_memory(_reallocate),
    "aligned_alloc": _with_memory(_allocate_aligned),
    "posix_memalign": _with_memory(_allocate_into),
    "free": _with_memory(_free),
    "memcpy": _with_memory(_copy),
    "memmove": _with_memory(_move),
    "memset": _with_memory(_set),
    "abort": type_independent(_stop),
    "__assert_fail": type_independent(_stop),
    **{name: FLOAT_INTRINSICS[entry] for name, entry in _MATHEMATICS.items()},
    **{f"{name}f": FLOAT_INTRINSICS[entry] for name, entry in _MATHEMATICS.items()},
}


def _fork_team(site: CallSite) -> Implementation:
    context = site.context

    def run(function: int, data: int, threads: int, _flags: int) -> None:
        name = context.symbols.function_at(function)
        context.team.fork(lambda: context.call(name, [data]), threads)

    return run


def _team_query(fact: Callable[[ThreadTeam], int]) -> ImplementationFactory:
    def make(site: CallSite) -> Implementation:
        return lambda: fact(site.context.team)

    return make


def _yield_turn(site: CallSite) -> Implementation:
    team = site.context.team

    def yield_turn() -> int:
        team.yield_turn()
        return 0

    return yield_turn


def _create_key(site: CallSite) -> Implementation:
    def create(place: int, _destructor: int) -> int:
        key = len(site.context.thread_values)
        site.context.thread_values[key] = {}
        site.context.memory.write(place, key.to_bytes(4, "little"), "pthread_key_create")
        return 0

    return create


def _get_specific(site: CallSite) -> Implementation:
    context = site.context

    def get(key: int) -> int:
        return context.thread_values[key].get(context.team.number, 0)

    return get


def _set_specific(site: CallSite) -> Implementation:
    context = site.context

    def put(key: int, value: int) -> int:
        context.thread_values[key][context.team.number] = value
        return 0

    return put


def _delete_key(_key: int) -> int:
    return 0


POSIX_LIBRARY: Final[FunctionTable] = {
    "pthread_key_create": _create_key,
    "pthread_key_delete": type_independent(_delete_key),
    "pthread_getspecific": _get_specific,
    "pthread_setspecific": _set_specific,
    SCHED_YIELD: _yield_turn,
}

OPENMP_LIBRARY: Final[FunctionTable] = {
    GOMP_PARALLEL: _fork_team,
    "omp_get_max_threads": _team_query(lambda team: team.max_threads),
    "omp_get_num_threads": _team_query(lambda team: team.size),
    "omp_get_thread_num": _team_query(lambda team: team.number),
    "omp_in_parallel": _team_query(lambda team: int(team.size > 1)),
}
