"""Functions by name: LLVM's intrinsics, the C library, OpenMP, and the instructions of targets.

An architecture's folder in `tlx.legalize` has a module `semantics` with a `SEMANTICS`: intrinsics, register types and
inline assembly. Other packages name theirs under the entry point group `tlx.semantics`. They are imported when a
program first needs one of them.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final, TypeAlias

from tlx.diagnostics import EvaluationError
from tlx.evaluate.context import (
    CallSite,
    FunctionTable,
    Implementation,
    ImplementationFactory,
    ThreadTeam,
    first_argument,
    no_operation,
    type_independent,
)
from tlx.evaluate.memory import AddressSpace
from tlx.evaluate.scalars import FLOAT_INTRINSICS, INTEGER_INTRINSICS
from tlx.evaluate.values import RuntimeValue, signed, width_of
from tlx.evaluate.vectors import MATRIX_INTRINSICS, VECTOR_INTRINSICS
from tlx.ir.builder.instructions import GOMP_PARALLEL
from tlx.target.discovery import semantics_modules


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
        raise EvaluationError(f"aligned_alloc with alignment {align}, which is no power of two")
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
        kept = min(size, old.size if old else 0)
        memory.write(new, memory.read(address, kept, "realloc"), "realloc")
        _free(memory, address)
    return new


def _copy(memory: AddressSpace, target: int, source: int, size: int) -> int:
    copy_memory(memory, target, source, size, may_overlap=False)
    return target


def _move(memory: AddressSpace, target: int, source: int, size: int) -> int:
    copy_memory(memory, target, source, size, may_overlap=True)
    return target


def _set(memory: AddressSpace, target: int, byte: int, size: int) -> int:
    fill_memory(memory, target, byte, size)
    return target


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

    def run(function: int, data: int, wanted: int, _flags: int) -> None:
        name = context.symbols.function_at(function)
        context.team.fork(lambda: context.call(name, [data]), wanted)

    return run


def _team_query(fact: Callable[[ThreadTeam], int]) -> ImplementationFactory:
    def make(site: CallSite) -> Implementation:
        return lambda: fact(site.context.team)

    return make


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
}

OPENMP_LIBRARY: Final[FunctionTable] = {
    GOMP_PARALLEL: _fork_team,
    "omp_get_max_threads": _team_query(lambda team: team.max_threads),
    "omp_get_num_threads": _team_query(lambda team: team.size),
    "omp_get_thread_num": _team_query(lambda team: team.number),
    "omp_in_parallel": _team_query(lambda team: int(team.size > 1)),
}
ENTRY_POINT_GROUP: Final = "tlx.semantics"

AssemblyTable: TypeAlias = Mapping[str, Callable[[Sequence[int]], Sequence[int]]]
"""By instruction: a function from the inputs of its inline assembly to its output registers."""


@dataclass(frozen=True, slots=True)
class TargetSemantics:
    """The meaning of one architecture's instructions in numpy.

    Attributes:
        intrinsics: Implementations by name, without `llvm.` and the suffix of an overload.
        registers: Register types that only the architecture's own instructions look into, by LLVM's name of the type:
            the shape of the array of bytes that stands for a value.
        assembly: Inline assembly by instruction.
    """

    intrinsics: FunctionTable = field(default_factory=FunctionTable)
    registers: Mapping[str, tuple[int, ...]] = field(default_factory=dict[str, tuple[int, ...]])
    assembly: AssemblyTable = field(default_factory=dict[str, Callable[[Sequence[int]], Sequence[int]]])


@cache
def target_semantics() -> TargetSemantics:
    """The instructions of all architectures; LLVM's names of them begin with the architecture."""
    from importlib.metadata import entry_points

    known = [importlib.import_module(name).SEMANTICS for name in semantics_modules()]
    known += [entry.load() for entry in entry_points(group=ENTRY_POINT_GROUP)]
    return TargetSemantics(
        {name: function for one in known for name, function in one.intrinsics.items()},
        {name: shape for one in known for name, shape in one.registers.items()},
        {name: function for one in known for name, function in one.assembly.items()},
    )


def register_shapes() -> Mapping[str, tuple[int, ...]]:
    """The register types of all architectures."""
    return target_semantics().registers


_INTRINSICS: FunctionTable = {
    **FLOAT_INTRINSICS,
    **INTEGER_INTRINSICS,
    **VECTOR_INTRINSICS,
    **MEMORY_INTRINSICS,
    **MATRIX_INTRINSICS,
}


@cache
def find_implementation(name: str) -> ImplementationFactory | None:
    """The entry of a function's name; of an intrinsic, whatever suffix its overload has.

    `llvm.vector.reduce.fadd.v4f32` is looked up as itself, then without `.v4f32`, and so on.
    """
    if not name.startswith("llvm."):
        return C_LIBRARY.get(name) or OPENMP_LIBRARY.get(name) or POSIX_LIBRARY.get(name)
    base = name.removeprefix("llvm.").replace("experimental.vector.reduce.v2.", "vector.reduce.")
    base = base.replace("experimental.vector.reduce.", "vector.reduce.")
    return _without_suffixes(base, _INTRINSICS) or _without_suffixes(base, target_semantics().intrinsics)


def _without_suffixes(name: str, table: FunctionTable) -> ImplementationFactory | None:
    """The entry of the longest prefix of a dotted name."""
    while name and name not in table:
        name = name.rpartition(".")[0]
    return table.get(name)
