"""Which of LLVM's failures are limits of its backends, and which are failures of TLX."""

from __future__ import annotations

import pytest

from tlx.fuzz.check import CheckSettings, RefusedError, check_program
from tlx.fuzz.generation.model import ChoiceNode
from tlx.fuzz.generation.programs import RandomProgram
from tlx.fuzz.limits import backend_limit
from tlx.fuzz.options import RandomOptions

SPILL = 'Assertion `... && "Emergency spill slot is out of reach"\' failed.'
NO_BFLOAT = "LLVM ERROR: Cannot select: t335: f32 = bf16_to_fp t337\n    t337: i32 = and t338, Constant:i32<65535>"
NO_TRUTH = "t24: v64i1 = truncate t23\n    t23: v64i8,ch = load\n      t20: Register:i32 $r0\nUnhandled HVX operation"
NO_CANONICAL = "LLVM ERROR: Cannot select: t491: v4f32 = fcanonicalize t5002"
NO_SINH = (
    "error: the program for 'hexagon-linux-musl' cannot be linked: ld.lld: error: undefined symbol: sinhf; clang-19: "
)
SLOW = "LLVM took more than 30 s of CPU time in 'emit'"
LARGE = "define internal <3860 x float> @f(<3860 x float> %x) {\n}\n"
BFLOAT = "define <9 x bfloat> @f(<9 x bfloat> %x) {\n}\n"
TRUTH = "declare i1 @llvm.vector.reduce.or.v64i1(<64 x i1>)\n"
NONE = "define void @f(ptr %x) {\n  %v = load <3860 x bfloat>, ptr %x\n}\n"


@pytest.mark.parametrize(
    ("error", "program", "reason"),
    [
        (SPILL, LARGE, "hundreds of elements"),
        ("LLVM ERROR: Incomplete scavenging after 2nd pass", LARGE, "hundreds of elements"),
        (NO_BFLOAT, BFLOAT, "bfloat"),
        (NO_TRUTH, TRUTH, "i1"),
        (SLOW, NONE, "too long"),
        (NO_CANONICAL, "%v = call <160 x float> @llvm.canonicalize.v160f32(<160 x float> %x)", "canonicalize"),
        (NO_SINH, "%v = call <68 x half> @llvm.sinh.v68f16(<68 x half> %x)", "C library"),
    ],
)
def test_limits_of_other_machines(error: str, program: str, reason: str) -> None:
    assert reason in backend_limit(error, program, (), is_foreign=True)
    assert not backend_limit(error, program, (), is_foreign=False)


@pytest.mark.parametrize("error", [SPILL, NO_BFLOAT, NO_TRUTH, NO_CANONICAL, NO_SINH])
def test_failures_of_programs_that_have_nothing_of_the_kind(error: str) -> None:
    assert not backend_limit(error, NONE, (), is_foreign=True)


def test_limit_of_a_feature() -> None:
    error = "LLVM ERROR: Cannot select: t1: v32bf16 = vector_shuffle t2, t3"
    assert "avx512bf16" in backend_limit(error, NONE, ("+avx512bf16",), is_foreign=False)
    assert not backend_limit(error, NONE, (), is_foreign=False)


@pytest.mark.parametrize(
    "error",
    [
        "LLVM ERROR: Cannot select: t122: v16f32 = X86ISD::CMPP t124, t125, TargetConstant:i8<1>",
        "X86ISelLowering.cpp:24520: llvm::SDValue LowerVSETCC(llvm::SDValue, const llvm::X86Subtarget&): Assertion",
    ],
)
def test_halves_that_cannot_be_compared(error: str) -> None:
    assert "halves" in backend_limit(error, "%v = fcmp olt <9 x half> %x, %y", (), is_foreign=False)
    assert not backend_limit(error, "%v = fcmp olt <8 x half> %x, %y", (), is_foreign=False)


@pytest.mark.parametrize("drawn", [RandomOptions(functions="+avx512bf16"), RandomOptions(cpu="emeraldrapids")])
def test_features_of_functions_and_processors_count(drawn: RandomOptions) -> None:
    text = """define void @f(ptr %x) {
  %v = load <9 x bfloat>, ptr %x, align 1
  %r = call <9 x bfloat> @llvm.trunc.v9bf16(<9 x bfloat> %v)
  store <9 x bfloat> %r, ptr %x, align 1
  ret void
}
declare <9 x bfloat> @llvm.trunc.v9bf16(<9 x bfloat>)
"""
    program = RandomProgram(text, (), "canonical", typed=False, node=ChoiceNode())
    check = CheckSettings("avx512", drawn=drawn)
    with pytest.raises(RefusedError, match="bfloat with"):
        check_program(program, check, lambda _step: None)


def test_selects_of_halves() -> None:
    """By one condition, and only with AVX512-FP16."""
    error = "LLVM ERROR: Cannot select: t37: v8f16 = X86ISD::CMOV t38, t21, TargetConstant:i8<7>, t34"
    program = "%w = select i1 %c, <2 x half> %a, <2 x half> %b"
    assert "half" in backend_limit(error, program, ("+avx512fp16",), is_foreign=False)
    assert not backend_limit(error, program, (), is_foreign=False)
    assert not backend_limit(
        error, "%w = select <2 x i1> %c, <2 x half> %a, <2 x half> %b", ("+avx512fp16",), is_foreign=False
    )
