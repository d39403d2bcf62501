"""The threads of a grid, each of which runs one work-item, and the operations that they execute together.

shuffle     the value of another lane of the subgroup
ballot      the flags of all lanes
once        code for one thread of the subgroup, or in a collective region of the work-group
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Final

from tlx.frontends.tensor_language.emit.emitter import Emitter
from tlx.ir.types import I1, I8, I32, I64, FloatType, IntType, PointerType, Type, VectorType, bits_of, bytes_of
from tlx.ir.values import Keyword, Value, const_float, const_int
from tlx.target import thread_calls

_RESULT_BYTES: Final = 16


def ballot(e: Emitter, mask: Value) -> Value:
    """A mask of one lane in each thread as an i32; lane 0 is the lowest bit."""
    flag = e.b.extract_element(mask, 0) if isinstance(mask.type, VectorType) else mask
    return thread_calls.ballot(e.b, flag, _size(e))


def shuffle(e: Emitter, value: Value, lane: Value) -> Value:
    """The scalar of a lane (i32) of the subgroup."""
    type_ = value.type
    if isinstance(type_, PointerType):
        return e.b.cast("inttoptr", shuffle(e, e.b.cast("ptrtoint", value, I64), lane), type_)
    bits = bits_of(type_)
    if isinstance(type_, FloatType):
        return e.b.cast("bitcast", shuffle(e, e.b.cast("bitcast", value, IntType(bits)), lane), type_)
    if bits <= I32.bits:
        return e.b.cast("trunc", thread_calls.shuffle(e.b, e.b.cast("zext", value, I32), lane, _size(e)), type_)
    halves = [
        thread_calls.shuffle(e.b, e.b.cast("trunc", part, I32), lane, _size(e))
        for part in (value, e.b.binary("lshr", value, const_int(I64, 32)))
    ]
    low, high = (e.b.cast("zext", half, I64) for half in halves)
    return e.b.binary("or", low, e.b.binary("shl", high, const_int(I64, 32)))


def barrier(e: Emitter) -> None:
    """Wait for the threads of the current region: the work-group's, or the subgroup's in an SPMD region."""
    if e.subgroup is None:
        thread_calls.barrier(e.b)
    else:
        thread_calls.subgroup_barrier(e.b, _size(e))


def once(e: Emitter, results: Sequence[Type], body: Callable[[], Sequence[Value]]) -> tuple[Value, ...]:
    """Emit code that one thread of the current region runs, between the preceding and the following code of all.

    Args:
        e: The emitter.
        results: Types of the values that it computes, scalars.
        body: Emits it.

    Returns:
        The values, in every thread.
    """
    assert e.item is not None
    b = e.b
    leader = e.item.number if e.subgroup is None else e.item.lane
    barrier(e)
    condition, before = b.icmp("eq", leader, 0), b.block
    with b.if_block(condition, "leader"):
        values = body()
        last = b.block
        if e.subgroup is None:
            for number, value in enumerate(values):
                b.store(value, _result(e, number), bytes_of(value.type))
    if e.subgroup is not None:
        first = const_int(I32, 0)
        values = [b.phi(v.type, [(v, last), (Keyword(v.type, "undef"), before)]) for v in values]
        barrier(e)
        return tuple(shuffle(e, value, first) for value in values)
    barrier(e)
    return tuple(b.load(type_, _result(e, number), bytes_of(type_)) for number, type_ in enumerate(results))


def _result(e: Emitter, number: int) -> Value:
    """The place of a result of `once` in a collective region."""
    assert e.item is not None
    return e.b.gep(I8, e.item.shared.base, number * _RESULT_BYTES)


def for_each_thread(e: Emitter, count: Value, body: Callable[[Value], None]) -> None:
    """Emit a loop over the numbers (i64) below a count, spread over the threads of the work-group."""
    assert e.item is not None
    b, threads = e.b, math.prod(e.launch.work_group_size)
    rounds = b.ceil_div(count, threads)
    with b.loop(0, rounds, name="round") as loop:
        number = b.add(b.mul(loop.index, threads), b.cast("zext", e.item.number, I64))
        with b.if_block(b.icmp("ult", number, count), "in.range"):
            body(number)


def last_active(e: Emitter, value: Value) -> Value:
    """The value in the last active lane."""
    scalar = e.b.extract_element(value, 0)
    if e.mask is None:
        return shuffle(e, scalar, const_int(I32, e.launch.subgroup_size - 1))
    zeros = e.b.call_intrinsic("llvm.ctlz", [I32], I32, [ballot(e, e.mask), const_int(I1, 1)])
    return shuffle(e, scalar, e.b.sub(const_int(I32, 31), zeros))


def load_where(e: Emitter, type_: Type, address: Value, align: int, mask: Value | None) -> Value:
    """The element at a thread's address (both vectors of one lane); zero where the mask is off."""
    b, place = e.b, e.b.extract_element(address, 0)
    if mask is None:
        return b.splat(b.load(type_, place, align), 1)
    condition, before = b.extract_element(mask, 0), b.block
    with b.if_block(condition, "active"):
        value = b.load(type_, place, align)
        last = b.block
    zero = Keyword(type_, "null") if isinstance(type_, PointerType) else zero_of(type_)
    return b.splat(b.phi(type_, [(value, last), (zero, before)]), 1)


@contextmanager
def where(e: Emitter, condition: Value | None) -> Generator[None]:
    """Code emitted inside runs in the threads for which a condition holds, in all if it is None."""
    if condition is None:
        yield
        return
    with e.b.if_block(condition, "where"):
        yield


def zero_of(type_: Type) -> Value:
    """Zero of an integer or floating-point type."""
    return const_float(type_, 0.0) if isinstance(type_, FloatType) else const_int(type_, 0)


def store_where(e: Emitter, value: Value, address: Value, align: int, mask: Value | None) -> None:
    """Store a thread's element (all are vectors of one lane) where the mask is on."""
    b = e.b
    scalar, place = b.extract_element(value, 0), b.extract_element(address, 0)
    if mask is None:
        b.store(scalar, place, align)
        return
    with b.if_block(b.extract_element(mask, 0), "active"):
        b.store(scalar, place, align)


def _size(e: Emitter) -> Value:
    return const_int(I32, e.launch.subgroup_size)
