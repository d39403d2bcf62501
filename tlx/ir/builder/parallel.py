"""Parallel regions: code that every thread of a team runs.

They call functions that both GCC's and LLVM's OpenMP libraries have:

    store the values into %shared
    call void @GOMP_parallel(ptr @name, ptr %shared, i32 team, i32 0)      team 0: as many as OMP_NUM_THREADS says

    define internal void @name(ptr %data) {      each thread calls it
      load the values
      body(values, omp_get_thread_num(), omp_get_num_threads())
    }

clang's own calls (`__kmpc_fork_call`) exist in LLVM's library alone. With GOMP's a program needs one OpenMP library,
and `omp_in_parallel` is right inside the program's own parallel regions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from tlx.ir.builder.instructions import Builder, new_function
from tlx.ir.types import I8, I32, I64, VOID, FunctionType, PointerType, StructType, Type, bytes_of
from tlx.ir.values import Global, Value, const_int

GOMP_PARALLEL: Final = "GOMP_parallel"


@dataclass(frozen=True, slots=True)
class Thread:
    """The thread that code runs on: its number in its team, and the team's size, both i64."""

    number: Value
    team: Value

    def share(self, b: Builder, total: Value) -> tuple[Value, Value]:
        """The thread's part of the range 0 to `total`: its first number, and its end (exclusive)."""
        return partition(b, total, self.number, self.team)


def partition(b: Builder, total: Value, number: Value, parts: Value) -> tuple[Value, Value]:
    """Part `number` of `parts` equal ones: `number * total / parts` to `(number + 1) * total / parts`."""
    first = b.binary("sdiv", b.mul(number, total), parts)
    return first, b.binary("sdiv", b.mul(b.add(number, 1), total), parts)


def emit_parallel_region(
    b: Builder,
    name: str,
    values: Sequence[Value],
    body: Callable[[Builder, list[Value], Thread], None],
    attributes: str,
    team: Value | None = None,
) -> None:
    """Emit code that calls a new function on every thread of a team, and waits for all of them.

    Args:
        b: Where to emit.
        name: Name of the new function.
        values: What it is passed.
        body: Emits the function's body, up to its `ret`: with a builder, the values in there, and the thread.
        attributes: Attributes of the function.
        team: The number of threads (i32); None for OMP_NUM_THREADS.
    """
    shared = StructType(tuple(v.type for v in values))
    memory = b.alloca(shared, "shared", 16)
    for k, value in enumerate(values):
        b.store(value, _field(b, shared, memory, k), _alignment(value.type))
    data = b.retype(memory, I8)
    _thread_function(b, name, shared, body, attributes)
    type_ = FunctionType(VOID, (data.type,))
    function = Global(b.module.pointer_to(type_), name)
    zero = const_int(I32, 0)
    b.call_named(GOMP_PARALLEL, VOID, [function, data, zero if team is None else team, zero])


def team_size(b: Builder, most: int) -> Value:
    """The size of a team (i32): at most `most`, and one inside a parallel region."""
    inside = b.call_named("omp_in_parallel", I32, [], "inside").value
    allowed = b.call_named("omp_get_max_threads", I32, [], "allowed").value
    one = const_int(I32, 1)
    return b.select(b.icmp("eq", inside, 0), b.umin(allowed, most), one, "team")


def _thread_function(
    b: Builder,
    name: str,
    shared: StructType,
    body: Callable[[Builder, list[Value], Thread], None],
    attributes: str,
) -> None:
    function = new_function(b.module, name, [(b.pointer(I8), "", "data")], attributes)
    inner = Builder(b.module, function)
    memory = inner.retype(function.arguments[0].value, shared)
    own: list[Value] = [
        inner.load(t, _field(inner, shared, memory, k), _alignment(t)) for k, t in enumerate(shared.elements)
    ]
    number, team = (
        inner.cast("sext", inner.call_named(asked, I32, []).value, I64, stem)
        for asked, stem in (("omp_get_thread_num", "thread"), ("omp_get_num_threads", "team"))
    )
    body(inner, own, Thread(number, team))
    inner.ret()


def _alignment(type_: Type) -> int:
    """Bytes that a field of the structure is aligned to at least."""
    if isinstance(type_, PointerType):
        return 8
    size = bytes_of(type_)
    return min(8, size & -size)


def _field(b: Builder, shared: StructType, memory: Value, k: int) -> Value:
    type_ = b.pointer(shared.elements[k]) if b.module.typed_pointers else memory.type
    body = f"getelementptr inbounds {shared}, {memory.typed}, i32 0, i32 {k}"
    operands = [memory, const_int(I32, 0), const_int(I32, k)]
    return b.emit("getelementptr", type_, operands, body, source_type=shared).value
