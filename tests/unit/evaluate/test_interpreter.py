"""Calls, control flow, arguments, limits, errors and their locations."""

from __future__ import annotations

import time
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tlx.diagnostics import EvaluationError
from tlx.evaluate import Machine, evaluate
from tlx.ir.parser.module import parse, parse_fully


def run(text: str, *args: Any, **options: Any) -> Any:
    return evaluate(parse(text, "test.ll"), "f", *args, **options)


IDENTITY = "define TYPE @f(TYPE %x) {\n  ret TYPE %x\n}\n"


@pytest.mark.parametrize(
    ("type_", "arg", "expected"),
    [
        ("i32", -5, -5),
        ("i32", (1 << 32) - 5, -5),
        ("i64", np.int64(7), 7),
        ("i1", True, True),
        ("i1", np.False_, False),
        ("float", 0.1, np.float32(0.1)),
        ("double", 0.1, 0.1),
        ("half", 1.5, 1.5),
        ("bfloat", ml_dtypes.bfloat16(1.5), 1.5),
        ("ptr", 0x1234, 0x1234),
        ("{ i8, float }", (-1, 2.5), (-1, 2.5)),
    ],
)
def test_arguments_and_results(type_: str, arg: Any, expected: Any) -> None:
    got = run(IDENTITY.replace("TYPE", type_), arg)
    assert got == expected
    assert type(got) is type(expected) or isinstance(got, (np.generic, type(expected)))


@pytest.mark.parametrize(
    ("type_", "arg", "dtype"),
    [
        ("<3 x i32>", [1, -2, 3], np.int32),
        ("<3 x i1>", [True, False, True], np.bool_),
        ("<2 x i64>", [-1, 1 << 62], np.int64),
        ("<2 x double>", [0.5, -1], np.float64),
        ("<3 x i5>", [1, -2, 15], np.int8),
    ],
)
def test_vector_arguments_and_results(type_: str, arg: Any, dtype: Any) -> None:
    got = run(IDENTITY.replace("TYPE", type_), arg)
    assert got.dtype == dtype
    np.testing.assert_array_equal(got, arg)


def test_wrong_arguments_are_errors() -> None:
    with pytest.raises(EvaluationError, match="@f takes 1 argument, got 2"):
        run(IDENTITY.replace("TYPE", "i32"), 1, 2)
    with pytest.raises(EvaluationError, match="<3 x i32> needs 3 elements, got an array of 2"):
        run(IDENTITY.replace("TYPE", "<3 x i32>"), [1, 2])
    with pytest.raises(EvaluationError, match=r"no function @g in this module; it has @f"):
        evaluate(parse(IDENTITY.replace("TYPE", "i32")), "g")


def test_phis_are_read_before_any_is_written() -> None:
    text = """\
define i32 @f(i32 %n) {
entry:
  br label %loop
loop:
  %a = phi i32 [ 1, %entry ], [ %b, %loop ]
  %b = phi i32 [ 2, %entry ], [ %a, %loop ]
  %i = phi i32 [ 0, %entry ], [ %j, %loop ]
  %j = add i32 %i, 1
  %c = icmp slt i32 %j, %n
  br i1 %c, label %loop, label %done
done:
  %r = mul i32 %a, 10
  %s = add i32 %r, %b
  ret i32 %s
}
"""
    assert [run(text, n) for n in (1, 2, 3)] == [12, 21, 12]


def test_switch_and_unnamed_values() -> None:
    text = """\
define i8 @f(i8 %0) {
  switch i8 %0, label %2 [
    i8 -1, label %3
    i8 7, label %4
  ]
2:
  ret i8 0
3:
  ret i8 1
4:
  ret i8 2
}
"""
    assert [run(text, n) for n in (-1, 255, 7, 8)] == [1, 1, 2, 0]


def test_calls() -> None:
    text = """\
@table = constant [2 x ptr] [ptr @double, ptr @square]
@alias = alias i32 (i32), ptr @square
define i32 @double(i32 %x) {
  %r = shl i32 %x, 1
  ret i32 %r
}
define i32 @square(i32 %x) {
  %r = mul i32 %x, %x
  ret i32 %r
}
define i32 @f(i32 %x, i32 %which) personality ptr null {
  %p = getelementptr [2 x ptr], ptr @table, i32 0, i32 %which
  %g = load ptr, ptr %p
  %a = call i32 %g(i32 %x)
  %b = invoke i32 @alias(i32 %a) to label %next unwind label %pad
next:
  %c = tail call fastcc noundef i32 @double(i32 noundef %b), !x !0
  ret i32 %c
pad:
  %l = landingpad { ptr, i32 } cleanup
  ret i32 -1
}
!0 = !{}
"""
    assert run(text, 3, 0) == 72
    assert run(text, 3, 1) == 162


def test_byval_arguments_are_copies() -> None:
    text = """\
%s = type { i32, i32 }
define void @g(ptr byval(%s) align 4 %p) {
  store i32 99, ptr %p
  ret void
}
define i32 @f() {
  %p = alloca %s
  store i32 1, ptr %p
  call void @g(ptr byval(%s) align 4 %p)
  %v = load i32, ptr %p
  ret i32 %v
}
"""
    assert run(text) == 1


def test_byval_arguments_are_copies_from_every_caller() -> None:
    text = """\
%s = type { i32, i32 }
declare void @outside(ptr byval(%s) %p)
define void @g(ptr byval(%s) align 64 %p) {
  store i32 99, ptr %p
  ret void
}
define void @plain(ptr %p) {
  call void @g(ptr %p)
  ret void
}
define void @indirect(ptr %p, ptr %f) {
  call void %f(ptr byval(%s) align 64 %p)
  ret void
}
define void @by_address(ptr %p) {
  call void @indirect(ptr %p, ptr @g)
  ret void
}
define void @foreign(ptr %p) {
  call void @outside(ptr byval(%s) %p)
  ret void
}
define void @old(i32* byval %p) {
  store i32 99, i32* %p
  ret void
}
"""
    written: list[int] = []

    def outside(pointer: int) -> None:
        machine.memory.write(pointer, b"abcd")
        written.append(pointer)

    machine = Machine(parse(text), foreign={"outside": outside})
    array = np.array([1, 2], np.int32)
    for name in ("g", "plain", "by_address", "foreign", "old"):
        machine.call(name, array)
        assert array.tolist() == [1, 2]
    assert written
    with pytest.raises(EvaluationError, match="copy of argument 0 of @g, which is passed by value, of 8 bytes"):
        machine.call("g", array[:1])


def test_the_padding_of_byval_arguments_is_not_read() -> None:
    text = "define float @f(ptr byval(<6400 x float>) %p) {\n  %x = load float, ptr %p\n  ret float %x\n}\n"
    assert run(text, np.ones(6400, np.float32)) == 1


def test_foreign_functions() -> None:
    text = """\
declare float @ask(i32, float)
define float @f(i32 %x) {
  %r = call float @ask(i32 %x, float 0.5)
  ret float %r
}
"""

    def ask(x: int, y: float) -> np.float32:
        return np.float32(x * y)

    machine = Machine(parse(text), foreign={"ask": ask})
    assert machine.call("f", 6) == 3
    with pytest.raises(EvaluationError, match="call to @ask, which is neither in this module nor known"):
        run(text, 6)


def test_endless_loops_end() -> None:
    text = "define void @f() {\n  br label %loop\nloop:\n  br label %loop\n}\n"
    with pytest.raises(EvaluationError, match="more than 1000 instructions were executed: an endless loop"):
        run(text, max_steps=1000)


def test_endless_recursion_ends() -> None:
    text = "define void @f() {\n  call void @f()\n  ret void\n}\n"
    with pytest.raises(EvaluationError, match="more than 1000 nested calls"):
        run(text)


def test_deep_recursion_works() -> None:
    text = """\
define i32 @f(i32 %n) {
  %c = icmp eq i32 %n, 0
  br i1 %c, label %zero, label %more
zero:
  ret i32 0
more:
  %m = sub i32 %n, 1
  %r = call i32 @f(i32 %m)
  %s = add i32 %r, %n
  ret i32 %s
}
"""
    assert run(text, 900) == 900 * 901 // 2


def test_errors_show_the_call_stack() -> None:
    text = """\
define void @g(i1 %x) {
  br i1 %x, label %bad, label %good
bad:
  unreachable
good:
  ret void
}
define void @f(i1 %x) {
  call void @g(i1 %x)
  ret void
}
"""
    run(text, False)
    with pytest.raises(EvaluationError, match="reached 'unreachable'") as caught:
        run(text, True)
    assert caught.value.render().startswith("test.ll:4:3: error: reached 'unreachable'\n  unreachable\n")
    assert "test.ll:9:3: note: called from @f" in caught.value.render()


def test_empty_assembly_does_nothing() -> None:
    text = 'define i32 @f(ptr %p) {\n  call void asm sideeffect "", "r,~{memory}"(ptr %p)\n  ret i32 7\n}\n'
    assert Machine(parse(text)).call("f", np.zeros(1, np.int32)) == 7


def test_empty_assembly_returns_its_operand() -> None:
    body = '  %r = call <2 x i32> asm "", "=v,0"(<2 x i32> %v)\n  ret <2 x i32> %r\n'
    text = f"define <2 x i32> @f(<2 x i32> %v) {{\n{body}}}\n"
    assert list(Machine(parse(text)).call("f", np.array([3, 4], np.int32))) == [3, 4]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("  call void @llvm.trap()\n  unreachable", "reached llvm.trap"),
        ("  call void @llvm.assume(i1 false)\n  ret void", "llvm.assume of a false condition"),
        ('  call void asm sideeffect "nop", ""()\n  ret void', "does not run inline assembly"),
        ('  %v = call i32 asm "", "=r"()\n  ret void', "result of this inline assembly is not its operand"),
        ('  %v = call i32 asm "", "=r,r"(i32 1)\n  ret void', "result of this inline assembly is not its operand"),
        ("  call void @abort()\n  unreachable", "the program called abort"),
        ("  call void @nowhere()\n  ret void", "call to @nowhere, which is neither in this module nor known"),
        ("  %v = call i64 @llvm.readcyclecounter()\n  ret void", "call to @llvm.readcyclecounter"),
        ("  %v = load fp128, ptr null\n  ret void", "no values of type fp128"),
    ],
)
def test_unsupported_instructions_are_errors_with_a_location(body: str, message: str) -> None:
    declarations = """\
declare void @llvm.trap()
declare void @llvm.assume(i1)
declare i64 @llvm.readcyclecounter()
declare void @abort()
declare void @nowhere()
"""
    text = f"{declarations}define void @f() {{\n{body}\n}}\n"
    with pytest.raises(EvaluationError, match=message) as caught:
        run(text)
    assert caught.value.span is not None
    assert caught.value.span.place == "test.ll:7:3"


def test_only_executed_functions_are_compiled() -> None:
    text = (
        "define i32 @f() {\n  ret i32 1\n}\ndefine fp128 @g(fp128 %x) {\n  %y = fadd fp128 %x, %x\n  ret fp128 %y\n}\n"
    )
    assert run(text) == 1


def test_changed_text_is_parsed_again() -> None:
    module = parse_fully("define i32 @f() {\n  ret i32 1\n}\n", "test.ll")
    instruction = module.function("f").entry.terminator
    instruction.text = "ret i32 2"
    assert evaluate(module, "f") == 2


def test_constructors_do_not_run() -> None:
    text = """\
@llvm.global_ctors = appending global [1 x { i32, ptr, ptr }] [{ i32, ptr, ptr } { i32 1, ptr @init, ptr null }]
define internal void @init() {
  %r = call i64 asm sideeffect "syscall", "={rax},{rax},{rdi},{rsi}"(i64 158, i64 4131, i64 18)
  ret void
}
define i32 @f() {
  ret i32 3
}
"""
    assert run(text) == 3


def test_metadata_and_debug_records_are_ignored() -> None:
    text = """\
declare void @llvm.dbg.value(metadata, metadata, metadata)
define i32 @f(i32 %x) {
    #dbg_value(i32 %x, !1, !DIExpression(), !2)
  call void @llvm.dbg.value(metadata i32 %x, metadata !1, metadata !DIExpression()), !dbg !2
  %r = add i32 %x, 1, !dbg !2
  ret i32 %r
}
!1 = !{}
!2 = !{}
"""
    assert run(text, 4) == 5


def test_many_blocks_are_compiled_in_linear_time() -> None:
    def seconds(count: int) -> float:
        """The least time to compile and run a chain of blocks."""
        blocks = (f"b{i}:\n  br label %b{i + 1}\n" for i in range(count))
        module = parse(f"define void @f() {{\n  br label %b0\n{''.join(blocks)}b{count}:\n  ret void\n}}\n")
        times: list[float] = []
        for _ in range(3):
            start = time.process_time()
            Machine(module).call("f")
            times.append(time.process_time() - start)
        return min(times)

    assert seconds(4000) < 16 * seconds(500)
