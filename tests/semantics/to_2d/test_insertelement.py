"""Elements inserted into vectors that loops carry: in place if the old vector has no other use, else copied."""

from __future__ import annotations

import numpy as np
import pytest

from tests.semantics.programs.harness import Job, check
from tests.semantics.to_2d.cases import numbers, same
from tests.support.tools import require_processor
from tlx.api.validation import validate
from tlx.evaluate import evaluate
from tlx.ir.parser.module import parse
from tlx.lower.options import Options
from tlx.lower.pipeline import lower

LOOP = """
define void @f(ptr noalias %a, ptr noalias %c, i64 %n) {
entry:
  %start = load <8192 x float>, ptr %a
  %first = fadd <8192 x float> %start, %start
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %latch ]
  %v = phi <8192 x float> [ FIRST, %entry ], [ %w, %latch ]
  %e = extractelement <8192 x float> %v, i64 %i
  %m = mul i64 %i, 17
  %j = and i64 %m, 8191
  BODY
  br label %latch
latch:
  %next = add i64 %i, 1
  %again = icmp ult i64 %next, %n
  br i1 %again, label %loop, label %exit
exit:
  store <8192 x float> RESULT, ptr %c
  %seen = extractelement <8192 x float> %first, i64 0
  store float %seen, ptr %a
  ret void
}
"""
ONE = "%w = insertelement <8192 x float> %v, float %e, i64 %j"
TWO = """%u = insertelement <8192 x float> %v, float %e, i64 %j
  %d = extractelement <8192 x float> %u, i64 %j
  %w = insertelement <8192 x float> %u, float %d, i32 9"""
OLD = """%w = insertelement <8192 x float> %v, float 1.0, i64 %j
  %d = extractelement <8192 x float> %v, i64 %j
  store float %d, ptr %c"""
SWAPPED = """%d = extractelement <8192 x float> %v, i64 %j
  %u = insertelement <8192 x float> %v, float %e, i64 %j
  %w = insertelement <8192 x float> %u, float %d, i64 %i"""


@pytest.mark.parametrize(
    ("first", "body", "result", "copies"),
    [
        ("zeroinitializer", ONE, "%w", 1),
        ("%start", ONE, "%w", 2),
        ("%first", ONE, "%w", 2),
        ("%first", TWO, "%w", 2),
        ("%first", SWAPPED, "%w", 2),
        ("%first", ONE, "%v", 4),
        ("%first", OLD, "%w", 4),
    ],
)
def test_copies(first: str, body: str, result: str, copies: int) -> None:
    """The first vector is copied if it has another use, or is in the user's memory; the result is stored."""
    text = LOOP.replace("FIRST", first).replace("BODY", body).replace("RESULT", result)
    lowered, _ = same(text, numbers(8192), numbers(8192), 5)
    assert lowered.count("call void @llvm.memcpy") == copies


@pytest.mark.parametrize("index", ["17", "%i"])
def test_the_destination_may_have_gaps(index: str) -> None:
    """The element was written as if the elements of a store's destination were adjacent."""
    text = f"""
define void @f(ptr noalias %a, ptr noalias %c, i64 %i) {{
  %v = load <496 x float>, ptr %a
  %w = insertelement <496 x float> %v, float 5.0, i64 {index}
  %t = call token @llvm.tensor.typeinfo(<496 x float> %w, <2 x i32> <i32 496, i32 1>, <2 x i32> <i32 0, i32 1>,
                                        <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr elementtype(float) %c, token %t, <2 x i32> <i32 0, i32 2>)
  ret void
}}
"""
    assert validate(text, "generic") == []


@pytest.mark.parametrize("target", ["generic", "avx512"])
def test_random_programs(target: str) -> None:
    require_processor(target)
    check(Job("elements", target, 5))


def test_a_constant_index_beyond_the_end_writes_no_memory() -> None:
    """The vector is poison, so it may hold anything."""
    text = """
define void @f(ptr %a, ptr %c) {
  %start = load <8192 x float>, ptr %a, align 4
  %first = fadd <8192 x float> %start, %start
  %w = insertelement <8192 x float> %first, float 1.0, i64 8192
  store <8192 x float> %w, ptr %c, align 4
  ret void
}
"""
    lowered = lower(parse(text), "generic", options=Options(stop_after="to-2d"))
    evaluate(lowered, "f", np.ones(8192, np.float32), np.ones(8192, np.float32))
