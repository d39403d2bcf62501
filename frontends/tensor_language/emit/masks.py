"""Conditional blocks, masks of active work-items, and loops over them.

A mask is `<S x i1>`; None means that all work-items are active. Inactive lanes may be poison, which `and` would
propagate: masks are combined by `select`, which ignores the operand that it does not choose.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import reduce

from tlx.frontends.tensor_language.emit.emitter import Emitter, Memref, Number
from tlx.frontends.tensor_language.emit.numbers import full_like, splat
from tlx.frontends.tensor_language.types import LOCAL_ALIGNMENT
from tlx.ir.types import I1, I32, I64, VOID, ArrayType, IntType, Type, VectorType
from tlx.ir.values import Keyword, Value, const_int


@contextmanager
def run_if(e: Emitter, condition: Value | None, name: str, end_name: str) -> Generator[None]:
    """Code emitted inside runs if a condition holds.

    Args:
        e: The emitter.
        condition: An i1, or None if it always runs.
        name: The name of its block.
        end_name: The name of the block after it.
    """
    if condition is None:
        yield
        return
    body = e.b.new_block(name)
    end = e.b.new_block(end_name, body)
    e.b.branch_if(condition, body, end)
    e.b.at_end(body)
    yield
    e.b.branch(end)
    e.b.at_end(end)


def all_of(e: Emitter, conditions: Sequence[Value]) -> Value:
    """Whether all conditions hold; there is at least one."""
    return reduce(lambda a, b: e.b.binary("and", a, b), conditions)


def if_else(e: Emitter, condition: Value, then: Callable[[], None], otherwise: Callable[[], None]) -> None:
    """`if (condition) then else otherwise`."""
    one = e.b.new_block("then")
    other = e.b.new_block("else", one)
    end = e.b.new_block("endif", other)
    e.b.branch_if(condition, one, other)
    for block, write in ((one, then), (other, otherwise)):
        e.b.at_end(block)
        write()
        e.b.branch(end)
    e.b.at_end(end)


def trap_if_null(e: Emitter, pointer: Value) -> None:
    """Trap if an allocation failed: a kernel cannot report an error to its caller."""
    short = e.b.new_block("no.memory")
    rest = e.b.new_block("allocated", short)
    e.b.branch_if(e.b.icmp("eq", pointer, Keyword(pointer.type, "null")), short, rest)
    e.b.at_end(short)
    e.b.call_named("llvm.trap", VOID, [])
    e.b.emit("unreachable", VOID, [], "unreachable")
    e.b.at_end(rest)


def active_where(e: Emitter, mask: Value | None, condition: Value) -> Value:
    """The active lanes in which a condition holds."""
    condition = splat(e, condition)
    return condition if mask is None else e.b.select(mask, condition, full_like(mask, 0))


def inactive_where(e: Emitter, condition: Value) -> Value:
    """The lanes in which a condition does not hold."""
    return e.b.binary("xor", condition, full_like(condition, -1))


def any_lane(e: Emitter, mask: Value) -> Value:
    """Whether any lane of a mask is set."""
    bits = _lane_bits(e, mask)
    return e.b.icmp("ne", bits, 0)


def _lane_bits(e: Emitter, mask: Value) -> Value:
    """A mask as an integer; lane 0 is the lowest bit."""
    assert isinstance(mask.type, VectorType)
    return e.b.cast("bitcast", mask, IntType(mask.type.count))


def first_active(e: Emitter, value: Value) -> Value:
    """The value in the first active lane; a scalar is returned as it is."""
    if not isinstance(value.type, VectorType):
        return value
    if e.mask is None:
        return e.b.extract_element(value, 0)
    return extract_lane(e, value, _first_lane(e, e.mask))


def to_uniform(e: Emitter, number: Number) -> Number:
    """A number that is uniform in the active lanes, as a scalar."""
    if not number.is_varying:
        return number
    return Number(number.type, tuple(first_active(e, part) for part in number.parts))


def to_uniform_memref(e: Emitter, memref: Memref) -> Memref:
    """A memref that is uniform in the active lanes, with scalar components."""
    if not memref.is_varying:
        return memref
    shape = tuple(first_active(e, extent) for extent in memref.shape)
    stride = tuple(first_active(e, step) for step in memref.stride)
    return replace(memref, pointer=first_active(e, memref.pointer), shape=shape, stride=stride)


def extract_lane(e: Emitter, vector: Value, lane: Value) -> Value:
    """`extractelement` with a lane known at run time."""
    assert isinstance(vector.type, VectorType)
    body = f"extractelement {vector.typed}, {lane.typed}"
    return e.b.value("extractelement", vector.type.element, [vector, lane], body)


def for_each_active(
    e: Emitter,
    values: Sequence[Value],
    results: Sequence[Type],
    body: Callable[[tuple[Value, ...]], Sequence[Value]],
) -> tuple[Value, ...]:
    """Emit a loop over the active lanes, lowest first.

    Args:
        e: The emitter.
        values: Scalars, and vectors of which the body gets one lane.
        results: Types of the results of the body.
        body: Emits the body, given the values of one lane.

    Returns:
        A vector for each of the results, undefined in inactive lanes.
    """
    spilled = [_spilled(e, value) for value in values]
    given = [_array(e, type_) for type_ in results]
    bits = _lane_bits(e, e.mask) if e.mask is not None else None
    with e.b.loop(0, e.lanes, name="lane") as loop:
        is_active = _bit(e, bits, loop.index) if bits is not None else None
        with run_if(e, is_active, "active", "inactive"):
            lane = tuple(_entry(e, memory, value, loop.index) for memory, value in zip(spilled, values, strict=True))
            for memory, value in zip(given, body(lane), strict=True):
                e.b.store(value, e.b.gep(value.type, memory, loop.index), 1)
    vectors = (VectorType(e.lanes, type_) for type_ in results)
    return tuple(e.b.load(type_, memory, LOCAL_ALIGNMENT) for type_, memory in zip(vectors, given, strict=True))


def _first_lane(e: Emitter, mask: Value) -> Value:
    bits = _lane_bits(e, mask)
    lane = e.b.call_intrinsic("llvm.cttz", [bits.type], bits.type, [bits, const_int(I1, 1)])
    if bits.type == I32:
        return lane
    assert isinstance(bits.type, IntType)
    return e.b.cast("zext" if bits.type.bits < I32.bits else "trunc", lane, I32)


def _array(e: Emitter, element: Type) -> Value:
    return e.b.alloca(ArrayType(e.lanes, element), "lanes", LOCAL_ALIGNMENT)


def _spilled(e: Emitter, value: Value) -> Value | None:
    """A vector in memory, where single lanes can be loaded."""
    if not isinstance(value.type, VectorType):
        return None
    memory = _array(e, value.type.element)
    e.b.store(value, memory, LOCAL_ALIGNMENT)
    return memory


def _entry(e: Emitter, memory: Value | None, value: Value, lane: Value) -> Value:
    if memory is None or not isinstance(value.type, VectorType):
        return value
    element = value.type.element
    return e.b.load(element, e.b.gep(element, memory, lane), 1)


def _bit(e: Emitter, bits: Value, lane: Value) -> Value:
    """The bit of a lane (i64)."""
    assert isinstance(bits.type, IntType)
    wide = IntType(max(I64.bits, bits.type.bits))
    return e.b.cast("trunc", e.b.binary("lshr", e.b.cast("zext", bits, wide), e.b.cast("zext", lane, wide)), I1)
