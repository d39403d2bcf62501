"""The builder: LLVM accepts what it builds, with both kinds of pointers, and it computes the right values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.ir.transform.test_rewrite import accepted
from tlx.evaluate import evaluate
from tlx.ir.builder import Builder, new_function
from tlx.ir.module import Module
from tlx.ir.parser.module import parse, parse_fully
from tlx.ir.rewrite import declare_function, set_operand
from tlx.ir.types import (
    DOUBLE,
    FLOAT,
    HALF,
    I1,
    I8,
    I32,
    I64,
    VOID,
    ArrayType,
    FunctionType,
    IntType,
    PointerType,
    Type,
    VectorType,
    is_float,
)
from tlx.ir.values import ConstInt, Value, const_float, const_int, const_ints, zero

TYPED = "declare void @typed(i8*)\n"
OPAQUE = "declare void @opaque(ptr)\n"
Body = Callable[[Builder, list[Value]], None]


def built(parameters: list[Type | None], body: Body, first: str = OPAQUE) -> Module:
    """A module with `void @f(...)`; None is a pointer to i64."""
    module = parse(first)
    types = [module.pointer_to(I64) if p is None else p for p in parameters]
    named = [(type_, "", f"a{i}") for i, type_ in enumerate(types)]
    b = Builder(module, new_function(module, "f", named, "nounwind", linkage="dso_local"))
    body(b, [argument.value for argument in b.function.arguments])
    b.ret()
    return module


def run(parameters: list[Type | None], body: Body, *arguments: Any) -> None:
    """Build with both kinds of pointers, have every LLVM read it, and evaluate what was written."""
    for first in (OPAQUE, TYPED):
        text = str(built(parameters, body, first))
        accepted(text, "opt-19", *(["opt-14"] if first is TYPED else []))
        evaluate(parse(text), "f", *arguments)


def results(body: Callable[[Builder, list[Value]], list[Value]], *numbers: int) -> list[int]:
    """The result of a body for i64 arguments."""

    def whole(b: Builder, arguments: list[Value]) -> None:
        for index, value in enumerate(body(b, arguments[1:])):
            b.store(value, b.gep(I64, arguments[0], index), 8)

    out = np.zeros(16, np.int64)
    run([None, *[I64] * len(numbers)], whole, out, *numbers)
    return out.tolist()


# Arithmetic --------------------------------------------------------------------------------------------------------


def test_arithmetic() -> None:
    def body(b: Builder, arguments: list[Value]) -> list[Value]:
        x, y = arguments
        return [
            b.add(x, y),
            b.sub(x, 3),
            b.mul(x, y, "product"),
            b.binary("udiv", x, const_int(I64, 3), flags="exact"),
            b.umin(x, y),
            b.umin(y, 2),
            b.ceil_div(x, 5),
            b.ceil_div(x, 4),
            b.select(b.icmp("slt", x, y), x, y),
            b.cast("sext", b.cast("trunc", x, I8), I64),
            b.cast("zext", b.icmp("eq", x, 12), I64),
        ]

    assert results(body, 12, -5)[:11] == [7, 9, -60, 4, 12, 2, 3, 3, -5, 12, 1]


def test_trivial_arithmetic_is_no_instruction() -> None:
    module = parse("")
    b = Builder(module, new_function(module, "f", [(I64, "", "x")], ""))
    x = b.function.arguments[0].value
    assert b.add(x, 0) is x
    assert b.sub(x, 0) is x
    assert b.mul(x, 1) is x
    assert b.mul(const_int(I64, 1), x) is x
    assert b.add(const_int(I64, 0), x) is x
    assert b.mul(x, 0) == const_int(I64, 0)
    assert b.add(const_int(I64, 2), 3) == const_int(I64, 5)
    assert b.sub(const_int(I64, 2), 3) == const_int(I64, -1)
    assert b.cast("trunc", x, I64) is x
    assert b.gep(I64, x, 0) is x
    assert not b.block.instructions
    assert str(b.sub(const_int(I64, 5), x)) == "%t"


@pytest.mark.parametrize("bits", [1, 8, 32])
def test_folded_numbers_fit_their_type(bits: int) -> None:
    module = parse("")
    b = Builder(module, new_function(module, "f", [], ""))
    most = const_int(IntType(bits), (1 << bits) - 1)
    folded = b.add(most, most)
    assert isinstance(folded, ConstInt)
    assert folded.value == (-2 if bits > 1 else 0)
    assert b.umin(const_int(IntType(bits), -1), 0) == const_int(IntType(bits), 0)


# Memory and vectors ------------------------------------------------------------------------------------------------


def test_memory() -> None:
    def body(b: Builder, arguments: list[Value]) -> None:
        out, source, n = arguments
        scratch = b.alloca(ArrayType(64, I8), "scratch")
        b.memset(scratch, 7, 64)
        b.memcpy(b.gep(I8, scratch, 8), source, n)
        with b.loop(0, 4, name="i") as loop:
            inner = b.alloca(I64)
            b.store(b.load(I64, b.gep(I64, scratch, loop.index), 1), inner, 8)
            b.store(b.load(I64, inner, 8), b.gep(I64, out, loop.index), 8)

    out = np.zeros(4, np.int64)
    run([None, None, I64], body, out, np.arange(1, 4), 12)
    assert out.tolist() == [0x0707070707070707, 1, 0x0707070700000002, 0x0707070707070707]


def test_vectors() -> None:
    four = VectorType(4, I64)

    def body(b: Builder, arguments: list[Value]) -> None:
        out, source, x = arguments
        v = b.load(four, source, 8)
        w = b.insert_element(v, x, 2)
        swapped = b.shuffle(w, v, [3, 2, 4, -1])
        b.store(b.add(swapped, 1), out, 8)
        b.store(b.splat(x, 4), b.gep(I64, out, 4), 8)
        mask = b.icmp("sgt", v, 1)
        loaded = b.masked_load(four, source, 8, mask)
        b.masked_store(b.add(loaded, b.splat(const_int(I64, 100), 4)), b.gep(I64, out, 8), 8, mask)
        b.store(b.extract_element(w, 2), b.gep(I64, out, 12), 8)
        assert b.shuffle(v, None, range(4)) is v

    out = np.full(13, -1, np.int64)
    run([None, None, I64], body, out, np.arange(4), 9)
    assert out[[0, 1, 2]].tolist() == [4, 10, 1]
    assert out[4:].tolist() == [9, 9, 9, 9, -1, -1, 102, 103, 9]


def test_lanes_of_narrowed_registers_come_from_the_register() -> None:
    four = VectorType(4, I64)

    def body(b: Builder, arguments: list[Value]) -> None:
        out, source = arguments
        register = b.load(four, source, 8)
        narrow = b.shuffle(register, None, [1, 2, 3])
        assert b.shuffle(b.shuffle(register, None, range(3)), None, [0, 1, 2, -1]) is register
        turned = b.shuffle(narrow, None, [2, 0, 1, 2])
        assert b.block.instructions[-1].operands[0] == register
        b.store(turned, out, 8)
        b.store(narrow, b.gep(I64, out, 4), 8)

    out = np.zeros(7, np.int64)
    run([None, None], body, out, np.arange(10, 14))
    assert out.tolist() == [13, 11, 12, 13, 11, 12, 13]


def test_float_functions() -> None:
    def body(b: Builder, arguments: list[Value]) -> None:
        out, x = arguments
        b.store(b.fma(x, x, const_float(FLOAT, 0.1)), out, 4)

    out = np.zeros(2, np.float32)
    run([None, FLOAT], body, out, 3.0)
    assert out[0] == np.float32(9.1)


@pytest.mark.parametrize("misuse", ["extract", "shuffle"])
def test_vectors_are_required(misuse: str) -> None:
    module = parse("")
    b = Builder(module, new_function(module, "f", [(I64, "", "x")], ""))
    x = b.function.arguments[0].value
    with pytest.raises(TypeError, match="i64"):
        b.extract_element(x, 0) if misuse == "extract" else b.shuffle(x, None, [0])


# Calls -------------------------------------------------------------------------------------------------------------


def test_calls() -> None:
    module = parse("")
    b = Builder(module, new_function(module, "f", [(I64, "", "x")], ""))
    b.debug = ", !dbg !7"
    x = b.function.arguments[0].value
    call = b.call_named("g", I64, [x, const_int(I8, 1)], "r", attributes="nounwind")
    assert call.text == "%r = call i64 @g(i64 %x, i8 1), !dbg !7"
    assert call.args == [x, const_int(I8, 1)]
    vararg = FunctionType(VOID, (I64,), vararg=True)
    again = b.call(declare_function(module, "h", vararg), vararg, [x, x], suffix=" #1")
    assert again.text == "call void (i64, ...) @h(i64 %x, i64 %x) #1, !dbg !7"
    assert again.result is None
    assert "declare i64 @g(i64, i8) nounwind" in str(module)


# Control flow ------------------------------------------------------------------------------------------------------


def test_branches_and_phis() -> None:
    def body(b: Builder, arguments: list[Value]) -> list[Value]:
        (x,) = arguments
        before = b.block
        then = b.new_block("then")
        end = b.new_block("end", then)
        b.branch_if(b.icmp("sgt", x, 10), then, end)
        b.at_end(then)
        doubled = b.mul(x, 2)
        b.branch(end)
        b.at_end(end)
        return [b.phi(I64, [(x, before), (doubled, then)], "result")]

    assert results(body, 5)[0] == 5
    assert results(body, 50)[0] == 100


@pytest.mark.parametrize("known", ["constants", "values"])
@settings(max_examples=25, deadline=None)
@given(start=st.integers(-3, 8), stop=st.integers(-3, 8), step=st.integers(1, 4))
def test_loops(known: str, start: int, stop: int, step: int) -> None:
    """The sum, the last and the number of the indices, carried out of a loop whose bounds are constants or values."""
    expected = list(range(start, stop, step))

    def body(b: Builder, arguments: list[Value]) -> list[Value]:
        first, last = (start, stop) if known == "constants" else arguments
        carry = [const_int(I64, 0), const_int(I64, -99), const_int(I64, 0)]
        with b.loop(first, last, step, carry=carry) as loop:
            total, _, count = loop.carried
            loop.next(b.add(total, loop.index), loop.index, b.add(count, 1))
        return loop.results

    if known == "constants" and not expected:
        with pytest.raises(ValueError, match="never runs"):
            results(body, start, stop)
        return
    assert results(body, start, stop)[:3] == [sum(expected), expected[-1] if expected else -99, len(expected)]


def test_loops_with_a_trip_are_tested_at_their_end_only() -> None:
    def body(b: Builder, arguments: list[Value]) -> list[Value]:
        with b.loop(0, arguments[0], carry=[arguments[0]], nonempty=True) as loop:
            loop.next(b.add(loop.carried[0], loop.index))
        return loop.results

    assert results(body, 4)[0] == 4 + 6
    text = str(built([None, I64], lambda b, a: b.store(body(b, a[1:])[0], a[0], 8)))
    assert text.count("icmp") == 1


def test_nested_loops_with_carried_values_and_conditions() -> None:
    def body(b: Builder, arguments: list[Value]) -> list[Value]:
        rows, columns = arguments
        with b.loop(0, rows, carry=[const_int(I64, 1)], name="row") as outer:
            with b.loop(outer.index, columns, 2, carry=outer.carried, name="column") as inner:
                with b.loop(0, 3, carry=inner.carried, name="k") as innermost:
                    innermost.next(b.add(b.mul(innermost.carried[0], 3), inner.index))
                inner.next(innermost.results[0])
            with b.loop(0, 1, carry=inner.results) as once:  # no loop at all
                once.next(b.sub(once.carried[0], outer.index))
            outer.next(*once.results)
        return outer.results

    def wanted(rows: int, columns: int) -> int:
        value = 1
        for row in range(rows):
            for column in range(row, columns, 2):
                for _ in range(3):
                    value = value * 3 + column
            value -= row
        return value

    for rows, columns in ((0, 5), (1, 0), (3, 4), (4, 2)):
        assert results(body, rows, columns)[0] == wanted(rows, columns)


def test_a_loop_in_the_middle_of_a_block() -> None:
    """Instructions after the insertion point stay after the loop, and phis of later blocks are updated."""
    module = parse_fully(
        "define i64 @f(i64 %n) {\n  %a = add i64 %n, 1\n  %b = mul i64 %a, 2\n  br label %end\n\nend:\n"
        "  %r = phi i64 [ %b, %0 ]\n  ret i64 %r\n}\n",
    )
    (function,) = module.functions
    b = Builder(module, function, function.entry, 1)
    with b.loop(0, 3, carry=[function.entry.instructions[0].value]) as loop:
        loop.next(b.add(loop.carried[0], 10))
    multiply = next(i for i in function.instructions() if i.result == "b")
    set_operand(multiply, 0, loop.results[0])
    accepted(str(module), "opt-14", "opt-19")
    assert evaluate(parse(str(module)), "f", 5) == 72


def test_loops_without_new_carried_values_keep_theirs() -> None:
    def body(b: Builder, arguments: list[Value]) -> list[Value]:
        with b.loop(0, arguments[0], carry=[const_int(I64, 7)]) as loop:
            pass
        return loop.results

    assert results(body, 3)[0] == 7


@pytest.mark.parametrize("pointer", ["ptr", "float*"])
def test_an_opaque_address_is_the_same_address(pointer: str) -> None:
    """It points to the same, in either dialect."""
    text = f"define float @f({pointer} %p) {{\n  %x = load float, {pointer} %p\n  ret float %x\n}}\n"
    module = parse_fully(text)
    (function,) = module.functions
    b = Builder(module, function, function.entry, 0)
    own = b.opaque_address(function.arguments[0].value)
    set_operand(function.entry.instructions[1], 0, own)
    assert f'call {pointer} asm "", "=r,0"({pointer} %p)' in str(module)
    accepted(str(module), "opt-19" if pointer == "ptr" else "opt-14")
    assert evaluate(parse(str(module)), "f", np.array([2.5], np.float32)) == 2.5


# Types and constants -----------------------------------------------------------------------------------------------


def test_small_things() -> None:
    assert is_float(VectorType(2, HALF))
    assert not is_float(I32)
    assert str(zero(VectorType(2, FLOAT))) == "zeroinitializer"
    assert str(zero(I1)) == "false"
    assert str(zero(DOUBLE)) == "0x0000000000000000"
    assert str(const_ints(I32, [1, -2])) == "<i32 1, i32 -2>"
    assert const_int(I8, -1).unsigned == 255
    assert parse(TYPED).pointer_to(VOID) == PointerType()
