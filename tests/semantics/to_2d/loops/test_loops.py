"""Stage 1 on loops and odd control flow: loop-carried tensors."""

from __future__ import annotations

import numpy as np
import pytest

from tests.semantics.to_2d.cases import DENSE, load, lower, numbers, product, same, store
from tlx.evaluate import Machine
from tlx.intrinsics.numpy_types import Array
from tlx.ir.parser.module import parse_fully
from tlx.llvm.verification import check_module
from tlx.lower.context import LoweringContext
from tlx.lower.to_2d import to_2d
from tlx.target.lookup import find_target

BIG = "<2 x i32> <i32 9, i32 9>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer"


def test_the_value_of_an_inner_loop_is_live_in_the_next_iteration() -> None:
    """%new is used after the next inner loop has begun to write %acc, so they must not share a buffer."""
    text = f"""
define void @f(ptr noalias %a, ptr noalias %c, i32 %n) {{
entry:
  %x = call token @llvm.tensor.load(ptr elementtype(float) %a, {BIG}, {DENSE})
  br label %outer
outer:
  %i = phi i32 [ 0, %entry ], [ %i2, %latch ]
  br label %inner
inner:
  %j = phi i32 [ 0, %outer ], [ %j2, %inner ]
  %acc = phi <81 x float> [ zeroinitializer, %outer ], [ %new, %inner ]
  %t = call token @llvm.tensor.typeinfo(<81 x float> %acc, {BIG})
  %u = call token @llvm.tensor.typeinfo(<81 x float> %acc, {BIG})
  %new = call <81 x float> @llvm.tensor.smma(token %t, token %x, token %x)
  %j2 = add i32 %j, 1
  %again = icmp slt i32 %j2, %n
  br i1 %again, label %inner, label %latch
latch:
  %v = call token @llvm.tensor.typeinfo(<81 x float> %new, {BIG})
  %w = call token @llvm.tensor.typeinfo(<81 x float> %acc, {BIG})
  %m = call <81 x float> @llvm.tensor.matmul(token %v, token %w)
  %s = call token @llvm.tensor.typeinfo(<81 x float> %m, {BIG})
  call void @llvm.tensor.store(ptr %c, token %s, {DENSE})
  %i2 = add i32 %i, 1
  %more = icmp slt i32 %i2, 2
  br i1 %more, label %outer, label %exit
exit:
  ret void
}}
"""
    lowered, _ = same(text, numbers(9, 9), numbers(9, 9), 3)
    assert "%new.buf" in lowered


def test_the_initial_value_of_a_loop_is_used_in_it() -> None:
    """%first is the initial value of %p and is read in every iteration, when the buffer of %p holds another value."""
    text = f"""
define void @f(ptr noalias %a, ptr noalias %b, ptr noalias %c, i32 %n) {{
entry:
  %x = call token @llvm.tensor.load(ptr elementtype(float) %a, {BIG}, {DENSE})
  %first = call <81 x float> @llvm.tensor.matmul(token %x, token %x)
  %other = load <81 x float>, ptr %b
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %i2, %loop ]
  %p = phi <81 x float> [ %first, %entry ], [ %other, %loop ]
  %t = call token @llvm.tensor.typeinfo(<81 x float> %p, {BIG})
  %u = call token @llvm.tensor.typeinfo(<81 x float> %first, {BIG})
  %m = call <81 x float> @llvm.tensor.smma(token %t, token %u, token %x)
  store <81 x float> %m, ptr %c
  %i2 = add i32 %i, 1
  %again = icmp slt i32 %i2, %n
  br i1 %again, label %loop, label %exit
exit:
  ret void
}}
"""
    same(text, numbers(9, 9), numbers(9, 9) + 1, numbers(9, 9), 3)


def accumulation(operands: str, exit_phi: str = "") -> str:
    return f"""
define void @f(ptr noalias %a, ptr noalias %c, i32 %n) {{
entry:
  %x = call token @llvm.tensor.load(ptr elementtype(float) %a, {BIG}, {DENSE})
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %i2, %loop ]
  %acc = phi <81 x float> [ zeroinitializer, %entry ], [ %new, %loop ]
  %t = call token @llvm.tensor.typeinfo(<81 x float> %acc, {BIG})
  %new = call <81 x float> @llvm.tensor.smma({operands})
  %i2 = add i32 %i, 1
  %again = icmp slt i32 %i2, %n
  br i1 %again, label %loop, label %exit
exit:
  {exit_phi}
  %u = call token @llvm.tensor.typeinfo(<81 x float> {"%out" if exit_phi else "%new"}, {BIG})
  call void @llvm.tensor.store(ptr %c, token %u, {DENSE})
  ret void
}}
"""


@pytest.mark.parametrize("exit_phi", ["", "%out = phi <81 x float> [ %new, %loop ]"])
def test_accumulator_of_a_loop_stays_in_one_buffer(exit_phi: str) -> None:
    lowered, _ = same(accumulation("token %t, token %x, token %x", exit_phi), numbers(9, 9), numbers(9, 9), 3)
    assert lowered.count("alloca") == 1
    assert lowered.count("@llvm.memcpy.p0.p0.i64(ptr %c") == 0 or "store.p0" in lowered


def test_accumulator_that_is_an_operand_as_well_has_two_buffers() -> None:
    lowered, _ = same(accumulation("token %t, token %x, token %t"), numbers(9, 9), numbers(9, 9), 3)
    assert lowered.count("alloca") == 2


def test_the_value_of_the_last_iteration_is_used_after_the_loop() -> None:
    text = accumulation("token %t, token %x, token %x").replace("float> %new, <2", "float> %acc, <2")
    same(text, numbers(9, 9), numbers(9, 9), 3)


def test_edges_of_a_switch() -> None:
    text = f"""
define void @f(ptr noalias %a, ptr noalias %c, i32 %n) {{
entry:
  %v = load <81 x float>, ptr %a
  switch i32 %n, label %one [
    i32 1, label %join
    i32 2, label %two
  ]
one:
  br label %join
two:
  br label %join
join:
  %p = phi <81 x float> [ zeroinitializer, %one ], [ %v, %entry ], [ undef, %two ]
  %k = phi i32 [ 1, %one ], [ 2, %entry ], [ 3, %two ]
  %t = call token @llvm.tensor.typeinfo(<81 x float> %p, {BIG})
  call void @llvm.tensor.store(ptr %c, token %t, {DENSE})
  ret void
}}
"""
    for n in (0, 1):
        same(text, numbers(9, 9), numbers(9, 9), n)


def test_unreachable_blocks() -> None:
    text = f"""
define void @f(ptr noalias %a, ptr noalias %c) {{
entry:
  ret void
dead:
  %p = phi <81 x float> [ %q, %dead ]
{load("x", "%a")}{product("m", "x", "x")}{store("%c", "%m")}
  %t = call token @llvm.tensor.typeinfo(<81 x float> %p, {BIG})
  %q = call <81 x float> @llvm.tensor.smma(token %t, token %t, token %t)
  br label %dead
}}
"""
    same(text, numbers(4, 4), numbers(4, 4))


def test_unreachable_code_may_define_values_by_themselves() -> None:
    text = f"""
define void @f(ptr %a, ptr %c) {{
  ret void
dead:
  %p = getelementptr float, ptr %p, i64 1
  %q = getelementptr float, ptr %q, i64 2
{load("x", "%p")}
  %v = call <16 x float> @llvm.tensor.tovector(token %x)
  %y = freeze <16 x float> %y
  %z = fadd <16 x float> %y, %v
  %w = freeze <16 x float> %w
{store("%q", "%z")}
  br label %dead
}}
"""
    lower(text)


def test_several_cases_of_a_switch_reach_a_loop_carried_tensor() -> None:
    text = """
define i32 @f(ptr noalias %a, ptr noalias %b, ptr noalias %c, i32 %k) {
entry:
  %v = load <400 x float>, ptr %a, align 4
  %w = load <400 x float>, ptr %b, align 4
  switch i32 %k, label %d [ i32 0, label %m
                            i32 1, label %m
                            i32 2, label %e ]
d:
  %x = fadd <400 x float> %v, %w
  br label %m
m:
  %p = phi <400 x float> [ %v, %entry ], [ %v, %entry ], [ %x, %d ]
  %n = phi i32 [ %k, %entry ], [ %k, %entry ], [ 7, %d ]
  %y = fmul <400 x float> %p, %w
  store <400 x float> %y, ptr %c, align 4
  ret i32 %n
e:
  ret i32 -1
}
"""
    for case in (0, 1, 2, 3):
        module = parse_fully(text)
        lowered = parse_fully(text)
        to_2d(lowered, LoweringContext(find_target("generic")))
        check_module(lowered, "to-2d")
        results: list[tuple[int, Array]] = []
        for version in (module, lowered):
            c = np.zeros(400, np.float32)
            results.append((Machine(version).call("f", numbers(400), numbers(400) + 2, c, case), c))
        assert results[0][0] == results[1][0]
        np.testing.assert_array_equal(results[0][1], results[1][1])
