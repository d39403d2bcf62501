"""Parallel regions, in which every thread of a team runs the body.

The emitted code calls functions that both GCC's and LLVM's OpenMP libraries have:

    store the values into %shared
    call void @GOMP_parallel(ptr @name, ptr %shared, i32 team, i32 0)      team 0: OMP_NUM_THREADS

    define internal void @name(ptr %data) {      each thread calls it
      load the values
      body(values, omp_get_thread_num(), omp_get_num_threads())
    }

clang calls `__kmpc_fork_call`, which only LLVM's library has. With GOMP's functions a program needs one OpenMP library,
and `omp_in_parallel` is true inside the program's own parallel regions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from tlx.ir.builder.blocks import Builder, new_function
from tlx.ir.types import (
    I8,
    I32,
    I64,
    VOID,
    ArrayType,
    FunctionType,
    PointerType,
    StructType,
    Type,
    bytes_of,
)
from tlx.ir.values import (
    Global,
    Value,
    const_int,
)

GOMP_PARALLEL: Final = "GOMP_parallel"
SCHED_YIELD: Final = "sched_yield"


@dataclass(frozen=True, slots=True)
class Thread:
    """The thread that code runs on: its number in its team, and the team's size, both i64."""

    number: Value
    team: Value

    def share(self, b: Builder, total: Value) -> tuple[Value, Value]:
        """The thread's part of the range 0 to `total`: its start and its exclusive end."""
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
        b: The builder.
        name: Name of the new function.
        values: The values that the function is passed.
        body: Emits the function's body, without its `ret`, given a builder, the passed values, and the thread.
        attributes: Attributes of the function.
        team: The number of threads (i32); None for OMP_NUM_THREADS.
    """
    shared = StructType(tuple(v.type for v in values))
    memory = b.alloca(shared, "shared", 16)
    for k, value in enumerate(values):
        b.store(value, _field(b, shared, memory, k), _alignment(value.type))
    data = b.retype(memory, I8)
    _thread_function(b, name, shared, body, attributes)
    _start_team(b, name, data, const_int(I32, 0) if team is None else team)


def emit_parallel_call(
    b: Builder,
    names: tuple[str, str],
    values: Sequence[Value],
    body: Callable[[Builder, list[Value], Thread], None],
    attributes: str,
    team: Value,
) -> None:
    """Emit code that calls a new function on every thread of a team; a team of one is the calling thread.

    Unlike the code of `emit_parallel_region`, it may be executed inside a parallel region of the program.

    Args:
        b: The builder.
        names: Names of the new functions: that with the body, and that which the threads of a team call.
        values: The values that the body is passed, of at most eight bytes each.
        body: Emits the body, without its `ret`, given a builder, the passed values, and the thread.
        attributes: Attributes of the functions.
        team: The number of threads (i32).
    """
    slots = b.retype(b.alloca(ArrayType(len(values), I64), "shared", 16), I64)
    for k, value in enumerate(values):
        b.store(value, b.gep(I64, slots, k), _alignment(value.type))
    data = b.retype(slots, I8)
    bounds: list[tuple[Type, str, str]] = [(I64, "", "thread"), (I64, "", "team")]
    function = new_function(b.module, names[0], [(b.pointer(I8), "", "data"), *bounds], attributes)
    inner = Builder(b.module, function)
    memory, number, size = (argument.value for argument in function.arguments)
    slots = inner.retype(memory, I64)
    passed: list[Value] = [
        inner.load(v.type, inner.gep(I64, slots, k), _alignment(v.type)) for k, v in enumerate(values)
    ]
    body(inner, passed, Thread(number, size))
    inner.ret()
    member = new_function(b.module, names[1], [(b.pointer(I8), "", "data")], attributes)
    outer = Builder(b.module, member)
    type_ = FunctionType(VOID, (data.type, I64, I64))
    callee = Global(b.module.pointer_to(type_), names[0])
    thread = _current_thread(outer)
    outer.call(callee, type_, [member.arguments[0].value, thread.number, thread.team])
    outer.ret()
    several, alone = b.if_else_blocks(b.icmp("ugt", team, 1), ("parallel", "serial"))
    end = b.new_block("joined", alone)
    b.at_end(several)
    _start_team(b, names[1], data, team)
    b.branch(end)
    b.at_end(alone)
    b.call(callee, type_, [data, const_int(I64, 0), const_int(I64, 1)])
    b.branch(end)
    b.at_end(end)


def _start_team(b: Builder, name: str, data: Value, team: Value) -> None:
    """Call a function on every thread of a team, and wait for all of them."""
    function = Global(b.module.pointer_to(FunctionType(VOID, (data.type,))), name)
    b.call_named(GOMP_PARALLEL, VOID, [function, data, team, const_int(I32, 0)])


def _current_thread(b: Builder) -> Thread:
    number, team = (
        b.cast("sext", b.call_named(callee, I32, []).value, I64, stem)
        for callee, stem in (("omp_get_thread_num", "thread"), ("omp_get_num_threads", "team"))
    )
    return Thread(number, team)


def team_size(b: Builder, most: int) -> Value:
    """The size of a team (i32): at most `most`, and one thread inside a parallel region."""
    inside = b.call_named("omp_in_parallel", I32, [], "in.parallel").value
    allowed = b.call_named("omp_get_max_threads", I32, [], "max.threads").value
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
    values: list[Value] = [
        inner.load(t, _field(inner, shared, memory, k), _alignment(t)) for k, t in enumerate(shared.elements)
    ]
    body(inner, values, _current_thread(inner))
    inner.ret()


def _alignment(type_: Type) -> int:
    """The alignment in bytes of a structure's field of a type."""
    if isinstance(type_, PointerType):
        return 8
    size = bytes_of(type_)
    return min(8, size & -size)


def _field(b: Builder, shared: StructType, memory: Value, k: int) -> Value:
    type_ = b.pointer(shared.elements[k]) if b.module.typed_pointers else memory.type
    body = f"getelementptr inbounds {shared}, {memory.typed}, i32 0, i32 {k}"
    operands = [memory, const_int(I32, 0), const_int(I32, k)]
    return b.emit("getelementptr", type_, operands, body, source_type=shared).value
