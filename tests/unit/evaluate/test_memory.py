"""Memory errors that the evaluator detects: out of bounds, after free, misaligned; and the layout of values."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tlx.diagnostics import EvaluationError
from tlx.evaluate import Machine, evaluate
from tlx.ir.parser.module import parse, parse_fully


def run(text: str, *args: Any) -> Any:
    return evaluate(parse(text, "test.ll"), "f", *args)


LOAD = """\
define i32 @f(ptr %p, i64 %i) {
  %q = getelementptr i32, ptr %p, i64 %i
  %v = load i32, ptr %q
  ret i32 %v
}
"""


@pytest.mark.parametrize("index", [0, 1, 2, 3])
def test_reads_inside_an_array(index: int) -> None:
    assert run(LOAD, np.array([5, -6, 7, 8], np.int32), index) == [5, -6, 7, 8][index]


@pytest.mark.parametrize(
    ("index", "message"),
    [
        (4, r"load of 4 bytes \(i32\) at 0x\w+ covers bytes 16 to 19 of argument %p of @f \(4 int32\), which has 16"),
        (-1, "begins 4 bytes before argument %p of @f"),
        (1 << 40, "is outside all memory"),
    ],
)
def test_reads_outside_an_array_are_errors(index: int, message: str) -> None:
    with pytest.raises(EvaluationError, match=message) as caught:
        run(LOAD, np.zeros(4, np.int32), index)
    assert caught.value.span is not None
    assert caught.value.span.place == "test.ll:3:3"
    assert "%v = load i32, ptr %q" in caught.value.render()


def test_null_is_an_error() -> None:
    with pytest.raises(EvaluationError, match=r"load of 4 bytes .* through a null pointer"):
        run(LOAD, 0, 0)
    with pytest.raises(EvaluationError, match="address 8: an offset from a null pointer"):
        run(LOAD, 0, 2)


def test_an_access_may_not_straddle_the_end() -> None:
    text = "define i64 @f(ptr %p) {\n  %v = load i64, ptr %p, align 1\n  ret i64 %v\n}\n"
    with pytest.raises(EvaluationError, match=r"covers bytes 0 to 7 .* which has 7 bytes"):
        run(text, np.zeros(7, np.uint8))


def test_use_after_free_is_an_error() -> None:
    text = """\
declare ptr @malloc(i64)
declare void @free(ptr)
define i8 @f() {
  %p = call ptr @malloc(i64 10)
  store i8 1, ptr %p
  call void @free(ptr %p)
  %v = load i8, ptr %p
  ret i8 %v
}
"""
    with pytest.raises(EvaluationError, match="in heap block of 10 bytes, which was freed"):
        run(text)
    with pytest.raises(EvaluationError, match="heap block of 10 bytes was freed before"):
        run(text.replace("%v = load i8, ptr %p", "call void @free(ptr %p)").replace("ret i8 %v", "ret i8 0"))
    with pytest.raises(EvaluationError, match="not the start of a heap block"):
        run(
            text.replace("store i8 1, ptr %p", "%q = getelementptr i8, ptr %p, i32 1").replace(
                "free(ptr %p)", "free(ptr %q)"
            )
        )


def test_stack_memory_ends_with_its_function() -> None:
    text = """\
define ptr @g() {
  %p = alloca i32
  store i32 1, ptr %p
  ret ptr %p
}
define i32 @f() {
  %p = call ptr @g()
  %v = load i32, ptr %p
  ret i32 %v
}
"""
    with pytest.raises(EvaluationError, match="in alloca %p of @g, which went out of scope when @g returned"):
        run(text)


def test_lifetime() -> None:
    text = """\
declare void @llvm.lifetime.start.p0(i64, ptr)
declare void @llvm.lifetime.end.p0(i64, ptr)
define i32 @f(i1 %late) {
  %p = alloca i32
  call void @llvm.lifetime.start.p0(i64 4, ptr %p)
  store i32 1, ptr %p
  call void @llvm.lifetime.end.p0(i64 4, ptr %p)
  br i1 %late, label %bad, label %good
bad:
  %v = load i32, ptr %p
  ret i32 %v
good:
  call void @llvm.lifetime.start.p0(i64 4, ptr %p)
  %w = load i32, ptr %p
  ret i32 %w
}
"""
    assert run(text, False) == -1  # undefined again
    with pytest.raises(EvaluationError, match=r"is dead after llvm.lifetime.end"):
        run(text, True)


def test_stack_restore_frees_later_allocations() -> None:
    text = """\
declare ptr @llvm.stacksave.p0()
declare void @llvm.stackrestore.p0(ptr)
define i32 @f(i32 %n) {
  %s = call ptr @llvm.stacksave.p0()
  %p = alloca i32, i32 %n
  store i32 1, ptr %p
  call void @llvm.stackrestore.p0(ptr %s)
  %v = load i32, ptr %p
  ret i32 %v
}
"""
    with pytest.raises(EvaluationError, match=r"went out of scope at llvm.stackrestore"):
        run(text, 3)


def test_unwritten_memory_is_nan() -> None:
    text = "define double @f() {\n  %p = alloca double\n  %v = load double, ptr %p\n  ret double %v\n}\n"
    assert np.isnan(run(text))


# Alignment -----------------------------------------------------------------------------------------------------------


def test_the_alignment_of_accesses_is_checked() -> None:
    text = "define float @f(ptr %p) {\n  %v = load float, ptr %p, align ALIGN\n  ret float %v\n}\n"
    array = np.zeros(8, np.float32)
    assert run(text.replace("ALIGN", "16"), array) == 0
    for wrong, view in (("32", array), ("8", array[1:])):
        with pytest.raises(EvaluationError, match=rf"says align {wrong}, but the address is not a multiple of it"):
            run(text.replace("ALIGN", wrong), view)
    assert run(text.replace("ptr %p)", "ptr align 64 %p)").replace("ALIGN", "64"), array) == 0
    assert run(text.replace(", align ALIGN", ""), array[1:]) == 0


def test_stack_alignment_is_exact() -> None:
    text = """\
define void @f() {
  %p = alloca float, align 8
  store float 0.0, ptr %p, align 16
  ret void
}
"""
    with pytest.raises(EvaluationError, match=r"store of 4 bytes .* says align 16"):
        run(text)


# Arrays --------------------------------------------------------------------------------------------------------------

COPY = """\
define void @f(ptr %to, ptr %from, i64 %n) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %j, %loop ]
  %p = getelementptr i8, ptr %from, i64 %i
  %q = getelementptr i8, ptr %to, i64 %i
  %v = load i8, ptr %p
  store i8 %v, ptr %q
  %j = add nuw i64 %i, 1
  %c = icmp ult i64 %j, %n
  br i1 %c, label %loop, label %done
done:
  ret void
}
"""


def test_overlapping_arrays_share_memory() -> None:
    array = np.arange(6, dtype=np.uint8)
    run(COPY, array[1:], array[:-1], 5)
    np.testing.assert_array_equal(array, 0)


def test_strided_views_are_used_in_place() -> None:
    array = np.arange(12, dtype=np.uint8).reshape(3, 4)
    run(COPY, array[1:, 1:3], np.array([50, 51], np.uint8), 2)
    np.testing.assert_array_equal(array, [[0, 1, 2, 3], [4, 50, 51, 7], [8, 9, 10, 11]])


def test_read_only_arrays_may_not_be_written() -> None:
    array = np.zeros(4, np.uint8)
    array.flags.writeable = False
    with pytest.raises(EvaluationError, match=r"in argument %to of @f .*, which is constant"):
        run(COPY, array, np.ones(4, np.uint8), 4)


def test_pointers_are_invalid_after_their_call() -> None:
    text = """\
@kept = global ptr null
define void @keep(ptr %p) {
  store ptr %p, ptr @kept
  ret void
}
define i8 @use() {
  %p = load ptr, ptr @kept
  %v = load i8, ptr %p
  ret i8 %v
}
"""
    machine = Machine(parse(text))
    machine.call("keep", np.zeros(4, np.uint8))
    with pytest.raises(EvaluationError, match="was an argument of a call that has ended"):
        machine.call("use")


# Layout --------------------------------------------------------------------------------------------------------------


def test_structs_have_the_layout_of_c() -> None:
    text = """\
%in = type { i16, double }
%s = type { i8, %in, [3 x i16], <3 x float>, i1 }
define void @f(ptr %p) {
  %a = getelementptr %s, ptr %p, i64 1, i32 1, i32 1
  store double 1.0, ptr %a
  %b = getelementptr %s, ptr %p, i32 1, i32 2, i64 2
  store i16 -2, ptr %b
  %c = getelementptr %s, ptr %p, i64 1, i32 3, i32 1
  store float 2.0, ptr %c
  %d = getelementptr %s, ptr %p, i64 1, i32 4
  store i1 true, ptr %d
  ret void
}
"""
    kind = np.dtype(
        {
            "names": ["a", "d", "h", "v", "b"],
            "formats": ["i1", "f8", "(3,)i2", "(3,)f4", "i1"],
            "offsets": [0, 16, 24, 32, 48],
            "itemsize": 64,
        }
    )
    array = np.zeros(2, kind)
    run(text, array)
    assert (array[1]["d"], array[1]["h"][2], array[1]["v"][1], array[1]["b"]) == (1.0, -2, 2.0, 1)
    assert not array[0].tobytes().strip(b"\0")


def test_packed_structs_have_no_gaps() -> None:
    text = """\
define void @f(ptr %p) {
  store <{ i8, i32, <{ i16 }> }> <{ i8 1, i32 2, <{ i16 }> <{ i16 3 }> }>, ptr %p
  ret void
}
"""
    array = np.zeros(7, np.uint8)
    run(text, array)
    assert array.tobytes() == b"\1\2\0\0\0\3\0"


@pytest.mark.parametrize(
    ("type_", "value", "expected"),
    [
        ("<9 x i1>", "<i1 1, i1 0, i1 1, i1 0, i1 0, i1 0, i1 0, i1 1, i1 1>", b"\x85\x01"),
        ("<3 x i4>", "<i4 1, i4 2, i4 -1>", b"\x21\x0f"),
        ("i24", "-2", b"\xfe\xff\xff"),
        ("i7", "-1", b"\x7f"),
        ("i128", "1", b"\1" + bytes(15)),
        ("<2 x half>", "<half 1.0, half -2.0>", np.array([1, -2], np.float16).tobytes()),
        ("bfloat", "0xR3FC0", np.array(1.5, ml_dtypes.bfloat16).tobytes()),
        ("[2 x { i8, i16 }]", "[{ i8, i16 } { i8 1, i16 2 }, { i8, i16 } zeroinitializer]", b"\1\0\2\0\0\0\0\0"),
    ],
)
def test_values_in_memory(type_: str, value: str, expected: bytes) -> None:
    text = f"define void @f(ptr %p) {{\n  store {type_} {value}, ptr %p\n  ret void\n}}\n"
    array = np.zeros(len(expected), np.uint8)
    run(text.replace("i1 1", "i1 true").replace("i1 0", "i1 false"), array)
    assert array.tobytes() == expected


# Globals -------------------------------------------------------------------------------------------------------------

GLOBALS = r"""
%pair = type { i32, ptr }
@text = private unnamed_addr constant [4 x i8] c"a\5Cb\00", align 1
@numbers = internal global [3 x i16] [i16 1, i16 2, i16 3], align 2
@zeros = global [100 x i8] zeroinitializer
@chain = global %pair { i32 7, ptr getelementptr inbounds ([3 x i16], ptr @numbers, i64 0, i64 2) }
@self = global ptr @self
@"odd name" = constant <2 x float> <float 1.0, float 2.0>
@outside = external global i32
@other = alias [3 x i16], ptr @numbers
@distance = constant i64 sub (i64 ptrtoint (ptr @text to i64), i64 ptrtoint (ptr @text to i64))

define i8 @character(i64 %i) {
  %p = getelementptr [4 x i8], ptr @text, i64 0, i64 %i
  %c = load i8, ptr %p
  ret i8 %c
}
define i16 @follow() {
  %p = load ptr, ptr getelementptr (%pair, ptr @chain, i32 0, i32 1)
  %v = load i16, ptr %p
  store i16 9, ptr %p
  ret i16 %v
}
define i1 @same() {
  %p = load ptr, ptr @self
  %c = icmp eq ptr %p, @self
  ret i1 %c
}
define float @odd() {
  %v = load <2 x float>, ptr @"odd name"
  %x = extractelement <2 x float> %v, i32 1
  ret float %x
}
define i16 @through_alias() {
  %v = load i16, ptr @other
  ret i16 %v
}
define i64 @zero() {
  %v = load i64, ptr @distance
  ret i64 %v
}
define void @write() {
  store i8 0, ptr @text
  ret void
}
define i32 @missing() {
  %v = load i32, ptr @outside
  ret i32 %v
}
"""


def test_globals() -> None:
    machine = Machine(parse(GLOBALS))
    assert [machine.call("character", i) for i in range(4)] == [97, 92, 98, 0]
    assert [machine.call("follow"), machine.call("follow")] == [3, 9]
    assert machine.call("same") is True
    assert machine.call("odd") == 2
    assert machine.call("through_alias") == 1
    assert machine.call("zero") == 0
    with pytest.raises(EvaluationError, match="in global @text, which is constant"):
        machine.call("write")
    with pytest.raises(EvaluationError, match="global @outside is external"):
        machine.call("missing")


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("add (i8 127, i8 1)", -128),
        ("sub (i8 -128, i8 1)", 127),
        ("mul (i8 16, i8 17)", 16),
        ("and (i8 -4, i8 7)", 4),
        ("or (i8 -128, i8 1)", -127),
        ("xor (i8 -1, i8 1)", -2),
        ("shl (i8 3, i8 7)", -128),
        ("lshr (i8 -128, i8 7)", 1),
        ("ashr (i8 -128, i8 7)", -1),
        ("udiv (i8 -1, i8 2)", 127),
        ("urem (i8 -1, i8 16)", 15),
        ("lshr (i8 ptrtoint (ptr null to i8), i8 0)", 0),
        ("sext (i1 true to i8)", -1),
        ("select (i1 icmp slt (i8 -1, i8 1), i8 3, i8 4)", 3),
    ],
)
def test_constant_expressions_are_evaluated(expression: str, expected: int) -> None:
    text = f"@number = constant i8 {expression}\ndefine i8 @f() {{\n  %v = load i8, ptr @number\n  ret i8 %v\n}}\n"
    assert run(text) == expected


@pytest.mark.parametrize(
    "expression",
    [
        "shl (i8 1, i8 8)",
        "shl (i8 1, i8 -1)",
        "lshr (i8 1, i8 8)",
        "ashr (i8 1, i8 8)",
        "udiv (i8 1, i8 0)",
        "urem (i8 1, i8 0)",
    ],
)
def test_constant_expressions_without_a_value_are_errors(expression: str) -> None:
    """Shifts by the width or more are poison, and a division by zero is undefined."""
    text = f"@number = constant i8 {expression}\ndefine i8 @f() {{\n  %v = load i8, ptr @number\n  ret i8 %v\n}}\n"
    with pytest.raises(EvaluationError, match=f"constant expression {expression[:4].strip()}"):
        run(text)


def test_typed_pointers() -> None:
    text = """\
@a = global [2 x i32] [i32 1, i32 2]
@b = global i32* getelementptr inbounds ([2 x i32], [2 x i32]* @a, i32 0, i32 1)
define i8 @f(i32** %unused) {
  %p = load i32*, i32** @b
  %q = bitcast i32* %p to <4 x i8>*
  %v = load <4 x i8>, <4 x i8>* %q
  %r = extractelement <4 x i8> %v, i32 0
  ret i8 %r
}
"""
    assert run(text, 0) == 2


def test_atomics() -> None:
    text = """\
define i32 @f(ptr %p) {
  %a = atomicrmw add ptr %p, i32 5 seq_cst
  %b = atomicrmw umax ptr %p, i32 -1 seq_cst
  %c = cmpxchg ptr %p, i32 -1, i32 40 acq_rel monotonic
  %ok = extractvalue { i32, i1 } %c, 1
  %n = zext i1 %ok to i32
  fence seq_cst
  %v = load atomic i32, ptr %p seq_cst, align 4
  %x = add i32 %a, %b
  %y = add i32 %x, %v
  %r = add i32 %y, %n
  ret i32 %r
}
"""
    assert run(text, np.array([10], np.int32)) == 10 + 15 + 40 + 1


@pytest.mark.parametrize(
    ("operation", "old", "operand", "new"),
    [
        ("uinc_wrap", 3, 7, 4),
        ("uinc_wrap", 7, 7, 0),
        ("udec_wrap", 3, 7, 2),
        ("udec_wrap", 0, 7, 7),
        ("udec_wrap", 9, 7, 7),
        ("usub_cond", 9, 7, 2),
        ("usub_cond", 3, 7, 3),
        ("usub_sat", 3, 7, 0),
        ("fmax", np.nan, 1.0, 1.0),
        ("fmaximum", np.nan, 1.0, np.nan),
        ("fmaximum", -0.0, 0.0, 0.0),
        ("fminimum", 0.0, -0.0, -0.0),
    ],
)
def test_atomic_updates(operation: str, old: float, operand: float, new: float) -> None:
    type_ = "float" if isinstance(old, float) else "i32"
    memory = np.array([old], np.float32 if type_ == "float" else np.int32)
    text = (
        f"define {type_} @f(ptr %p, {type_} %x) {{\n  %a = atomicrmw {operation} ptr %p, {type_} %x seq_cst\n"
        f"  ret {type_} %a\n}}\n"
    )
    np.testing.assert_array_equal(run(text, memory, operand), old)
    np.testing.assert_array_equal([memory[0], np.signbit(memory[0])], [new, np.signbit(new)])


def test_globals_have_the_alignment_that_opt_assumes() -> None:
    """LLVM aligns definitions of more than 16 bytes to 16, and `opt` raises the alignment of loads accordingly."""
    text = """
    @small = private constant [3 x i16] [i16 1, i16 2, i16 3]
    @table = private constant [12 x i16] [i16 1, i16 2, i16 3, i16 4, i16 5, i16 6, i16 7, i16 8, i16 9, i16 10,
                                          i16 11, i16 12]
    define i64 @f() {
      %s = load i16, ptr @small, align 2
      %v = load <8 x i16>, ptr @table, align 16
      %e = extractelement <8 x i16> %v, i32 7
      %r = zext i16 %e to i64
      ret i64 %r
    }
    """
    assert evaluate(parse_fully(text), "f") == 8
