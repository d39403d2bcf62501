"""Vectors that are too large for a signature: functions take and return them through pointers."""

from __future__ import annotations

import numpy as np
import pytest

import tlx
from tlx.diagnostics import LoweringError
from tlx.evaluate import Machine
from tlx.intrinsics.numpy_types import Array
from tlx.ir.parser.module import parse
from tlx.llvm.verification import check_module
from tlx.lower.options import STAGE_NAMES, Options
from tlx.lower.pipeline import lower

_DIMS = "<2 x i32> <i32 80, i32 80>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer"
PROGRAM = f"""
define internal noundef <6400 x float> @scale(<6400 x float> %0, float %s) {{
  %t = call token @llvm.tensor.typeinfo(<6400 x float> %0, {_DIMS})
  %r = call <6400 x float> @llvm.tensor.relu(token %t)
  %i = insertelement <6400 x float> undef, float %s, i32 0
  %v = shufflevector <6400 x float> %i, <6400 x float> undef, <6400 x i32> zeroinitializer
  %m = fmul <6400 x float> %r, %v
  ret <6400 x float> %m
}}

define <6400 x float> @twice(<6400 x float> noundef %x) {{
  %y = call <6400 x float> @scale(<6400 x float> %x, float 2.0)
  %z = call <6400 x float> @scale(<6400 x float> %y, float -1.5)
  %w = fadd <6400 x float> %y, %z
  ret <6400 x float> %w
}}

define void @keep(<6400 x float> %x, PTR %q) {{
  store <6400 x float> %x, PTR %q, align 4
  ret void
}}

define i32 @f(PTR %p, PTR %q, i32 %n) {{
entry:
  %x = load <6400 x float>, PTR %p, align 4
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %next, %loop ]
  %acc = phi <6400 x float> [ %x, %entry ], [ %sum, %loop ]
  %y = call <6400 x float> @twice(<6400 x float> %acc)
  %sum = fadd <6400 x float> %y, %x
  %next = add i32 %i, 1
  %again = icmp slt i32 %next, %n
  br i1 %again, label %loop, label %done
done:
  call void @keep(<6400 x float> %sum, PTR %q)
  %e = extractelement <6400 x float> %sum, i32 77
  %k = fptosi float %e to i32
  ret i32 %k
}}
"""


@pytest.mark.parametrize("pointer", ["ptr", "<6400 x float>*"])
@pytest.mark.parametrize("stage", STAGE_NAMES)
def test_calls_mean_the_same(stage: str, pointer: str) -> None:
    text = PROGRAM.replace("PTR", pointer)
    lowered = parse(str(lower(parse(text), "avx512", options=Options(stop_after=stage))))
    check_module(lowered)
    x = np.random.default_rng(1).integers(-4, 5, 6400).astype(np.float32)
    outputs: list[tuple[object, Array]] = []
    for module in (parse(text), lowered):
        out = np.zeros_like(x)
        outputs.append((Machine(module).call("f", x.copy(), out, 3), out))
    assert outputs[0][0] == outputs[1][0]
    np.testing.assert_array_equal(outputs[0][1], outputs[1][1])
    assert np.any(outputs[0][1])


@pytest.mark.parametrize(
    ("tail", "message"),
    [
        ("@table = global ptr @twice\n", "its address cannot be taken"),
        ("define ptr @g(<6400 x float> %x) {\n  ret ptr @twice\n}\n", "its only uses may be plain calls"),
        (
            "define i1 @g(<6400 x float> %x) {\n  %c = icmp eq ptr @twice, null\n  ret i1 %c\n}\n",
            "its only uses may be plain calls",
        ),
    ],
)
def test_functions_are_only_called(tail: str, message: str) -> None:
    with pytest.raises(LoweringError, match=message):
        lower(parse(PROGRAM.replace("PTR", "ptr") + tail), "generic")


def test_functions_of_other_modules_keep_their_signature() -> None:
    text = PROGRAM.replace("PTR", "ptr").replace(
        "define void @keep(<6400 x float> %x, ptr %q) {", "define void @other() {"
    )
    text = text.replace("  store <6400 x float> %x, ptr %q, align 4\n", "")
    text += "declare void @keep(<6400 x float>, ptr)\n"
    with pytest.raises(LoweringError, match="call of <6400 x float> is not lowered"):
        lower(parse(text), "generic")


_CALLED = """
define internal CC noundef <6400 x float> @g(<6400 x float> %x, ptr byval([2 x i32]) %s, i8 signext %n) ATTRIBUTES {
  %v = load i32, ptr %s
  store i32 77, ptr %s
  %a = sitofp i32 %v to float
  %b = sitofp i8 %n to float
  %i = insertelement <6400 x float> %x, float %a, i32 0
  %j = insertelement <6400 x float> %i, float %b, i32 1
  %t = call token @llvm.tensor.typeinfo(<6400 x float> %j, DIMS)
  %r = call <6400 x float> @llvm.tensor.fabs(token %t)
  ret <6400 x float> %r
}

define i32 @f(ptr noalias %p, ptr noalias %q) {
  %s = alloca [2 x i32]
  store i32 5, ptr %s
  %x = load <6400 x float>, ptr %p
  %y = call CC noundef <6400 x float> @g(<6400 x float> %x, ptr byval([2 x i32]) %s, i8 signext -3)
  store <6400 x float> %y, ptr %q
  %k = load i32, ptr %s
  ret i32 %k
}

attributes #7 = { nounwind willreturn readnone }
""".replace("DIMS", _DIMS)


@pytest.mark.parametrize("attributes", ["nounwind memory(none)", "#7", "readonly"])
@pytest.mark.parametrize("convention", ["", "fastcc", "cc 9"])
def test_convention_and_attributes(convention: str, attributes: str) -> None:
    """Calls keep convention and argument attributes; memory attributes are dropped, as pointers access memory."""
    text = _CALLED.replace("CC", convention).replace("ATTRIBUTES", attributes)
    x = np.arange(6400, dtype=np.float32) - 100
    expected = np.abs(x)
    expected[:2] = 5, 3
    module = lower(parse(text), "generic", options=Options(stop_after="to-2d"))
    out = np.zeros_like(x)
    assert Machine(module).call("f", x, out) == 5
    np.testing.assert_array_equal(out, expected)
    out = np.zeros_like(x)
    assert tlx.compile(text, "generic")["f"](x, out) == 5
    np.testing.assert_array_equal(out, expected)


_VARIADIC = """
define void @g(<6400 x float> %x, ptr %q, ...) {
  store <6400 x float> %x, ptr %q
  ret void
}

define void @f(ptr %p, ptr %q) {
  %x = load <6400 x float>, ptr %p
  call CALL
  ret void
}
"""


def test_a_call_of_a_variadic_function() -> None:
    text = _VARIADIC.replace("CALL", "void (<6400 x float>, ptr, ...) @g(<6400 x float> %x, ptr %q, i32 3, ptr %p)")
    module = lower(parse(text), "generic", options=Options(stop_after="to-2d"))
    x, out = np.arange(6400, dtype=np.float32), np.zeros(6400, np.float32)
    Machine(parse(str(module))).call("f", x, out)
    np.testing.assert_array_equal(x, out)
    assert "@g(ptr %in.buf, ptr %q, i32 3, ptr %p)" in str(module)


def test_a_call_of_another_type_is_refused() -> None:
    with pytest.raises(LoweringError, match="call it with the type of its definition"):
        lower(parse(_VARIADIC.replace("CALL", "void @g(i32 3)")), "generic")


@pytest.mark.parametrize("convention", ["", "fastcc", "cc 9", "spir_func", "win64cc", "preserve_mostcc"])
@pytest.mark.parametrize("passing", ["", "inreg"])
def test_calls_keep_their_convention(convention: str, passing: str) -> None:
    text = f"""
define {convention} {passing} <6400 x float> @g(i8 zeroext %n, <6400 x float> {passing} %x, ptr nest %q) noinline {{
  %w = zext i8 %n to i32
  store i32 %w, ptr %q
  %y = fadd <6400 x float> %x, %x
  ret <6400 x float> %y
}}

define i32 @f(ptr %p, ptr %o) {{
  %q = alloca i32
  %x = load <6400 x float>, ptr %p
  %y = call {convention} {passing} <6400 x float> @g(i8 zeroext 200, <6400 x float> {passing} %x, ptr nest %q)
  store <6400 x float> %y, ptr %o
  %r = load i32, ptr %q
  ret i32 %r
}}
"""
    x, out, number = np.arange(6400, dtype=np.float32), np.zeros(6400, np.float32), np.zeros(1, np.int32)
    compiled = tlx.compile(text, "generic")
    assert compiled.f(x, out) == 200
    np.testing.assert_array_equal(out, 2 * x)
    np.testing.assert_array_equal(compiled.g(200, x, number), out)
    assert number[0] == 200


_CALLED_FROM_OUTSIDE = """
define <6400 x float> @g(<6400 x float> %x, float %s, <6400 x float> %y) {
  %z = fadd <6400 x float> %x, %y
  %i = insertelement <6400 x float> %z, float %s, i32 1
  ret <6400 x float> %i
}

define <9000 x i1> @h(<9000 x i1> %k) {
  %n = xor <9000 x i1> %k, splat (i1 true)
  ret <9000 x i1> %n
}

define void @f(ptr noalias %p, ptr noalias %q) {
  %t = call token @llvm.tensor.load(ptr elementtype(float) %p, DIMS, <2 x i32> zeroinitializer)
  %r = call <6400 x float> @llvm.tensor.relu(token %t)
  %k = fcmp ogt <6400 x float> %r, splat (float 3.0)
  %w = shufflevector <6400 x i1> %k, <6400 x i1> %k, <9000 x i32> LANES
  %n = call <9000 x i1> @h(<9000 x i1> %w)
  %i = zext <9000 x i1> %n to <9000 x i8>
  store <9000 x i8> %i, ptr %q
  ret void
}
""".replace("DIMS", _DIMS).replace("LANES", f"<{', '.join(f'i32 {lane}' for lane in range(9000))}>")


def test_large_vectors_of_truth_values() -> None:
    module = lower(parse(_CALLED_FROM_OUTSIDE), "generic", options=Options(stop_after="to-2d"))
    x, out = np.arange(6400, dtype=np.float32) % 11, np.zeros(9000, np.uint8)
    Machine(parse(str(module))).call("f", x, out)
    np.testing.assert_array_equal(out, np.concatenate([x, x])[:9000] <= 3)


def test_python_calls_functions_whose_vectors_are_passed_by_pointer() -> None:
    compiled = tlx.compile(_CALLED_FROM_OUTSIDE, "generic")
    x = np.arange(6400, dtype=np.float32)
    expected = 3 * x
    expected[1] = 2.5
    np.testing.assert_array_equal(compiled["g"](x, 2.5, 2 * x), expected)
    truth = np.arange(9000) % 3 == 0
    np.testing.assert_array_equal(compiled["h"](truth), ~truth)


@pytest.mark.parametrize("count", [4096, 4097, 4100, 4999, 5000])
def test_functions_without_tensor_operations_take_vectors_of_any_size(count: int) -> None:
    text = f"""
define <{count} x i32> @twice(<{count} x i32> %x) {{
  %y = add <{count} x i32> %x, %x
  ret <{count} x i32> %y
}}

define void @f(ptr %p) {{
  %v = load <{count} x i32>, ptr %p
  %r = call <{count} x i32> @twice(<{count} x i32> %v)
  %t = call token @llvm.tensor.typeinfo(<{count} x i32> %r, <1 x i32> <i32 {count}>, <1 x i32> zeroinitializer,
                                        <1 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %p, token %t, <1 x i32> zeroinitializer)
  ret void
}}
"""
    x = np.arange(count, dtype=np.int32)
    expected = 2 * x
    Machine(lower(parse(text), "avx2")).call("f", x)
    np.testing.assert_array_equal(x, expected)
