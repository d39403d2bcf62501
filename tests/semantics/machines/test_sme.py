"""Machine code for Arm's Scalable Matrix Extension under QEMU computes what its programs mean.

Streaming mode has longer vectors than the processor otherwise, and lacks the instructions of FEAT_SME_FA64.
"""

from __future__ import annotations

import re

import numpy as np
import pytest

from tests.semantics.machines import programs
from tests.support.emulation import Machine
from tests.support.tools import quick
from tlx.evaluate import evaluate
from tlx.ir.parser.module import parse
from tlx.lower.options import Options
from tlx.lower.pipeline import lower, lower_text

SME, SME256, SME512 = (
    Machine(
        name,
        "qemu-aarch64 -cpu max,sve128=on,sve-default-vector-length=16,sme_fa64=off,"
        f"sme{bits}=on,sme-default-vector-length={bits // 8}",
    )
    for name, bits in (("sme", 128), ("sme256", 256), ("sme512", 512))
)
MACHINES = [SME256, SME512, SME]
KINDS = [kind for kind in programs.KINDS if kind != "double"]
INSTRUCTIONS = (
    *("sme.mopa.nxv4f32", "sme.mopa.wide.nxv8f16", "sme.mopa.wide.nxv8bf16"),
    *(f"sme.{signs}mopa.wide" for signs in ("s", "u", "us", "su")),
)


@pytest.mark.parametrize("machine", quick(MACHINES, 1), ids=str)
def test_products(machine: Machine) -> None:
    code = programs.check_products(machine)
    for name in INSTRUCTIONS[machine == SME :]:  # with 128 bits, vectors multiply float as fast
        assert name in code.lowered
    code.close()


@pytest.mark.parametrize("machine", quick([SME256, SME512, SME], 1), ids=str)
def test_unoptimised_products(machine: Machine) -> None:
    programs.check_products(machine, shapes=programs.FEW_SHAPES, opt_level=0).close()


@pytest.mark.long
def test_threads() -> None:
    code = programs.check_products(SME512, shapes=programs.FEW_SHAPES, threads=True)
    assert "GOMP_parallel" in code.lowered
    code.close()


@pytest.mark.parametrize("machine", quick(MACHINES, 1), ids=str)
def test_layers(machine: Machine) -> None:
    programs.check_layers(machine)


@pytest.mark.parametrize("machine", quick(MACHINES, 1), ids=str)
def test_half(machine: Machine) -> None:
    programs.check_half(machine.compile)


def test_tensor_language() -> None:
    programs.check_attention(SME512)


@pytest.mark.long
@pytest.mark.parametrize("machine", [SME512, SME], ids=str)
def test_run_time_sizes(machine: Machine) -> None:
    programs.check_dynamic(machine, programs.HALVES[machine == SME])


@pytest.mark.parametrize("machine", MACHINES, ids=str)
def test_random_programs(machine: Machine) -> None:
    programs.check_random_programs(machine, range(3))


@pytest.mark.parametrize("target", ["sme", "sme512"])
@pytest.mark.parametrize("kind", KINDS)
def test_evaluator(target: str, kind: str) -> None:
    shape = (40, 80, 64)
    text = programs.fused_product_text(kind, shape)
    lowered = lower(parse(text), target, options=Options(triple="aarch64-linux-gnu"))
    name = "_".join([kind, *map(str, shape)])
    found, *operands = programs.fused_product_arguments(kind, shape)
    exact = found.copy()
    evaluate(lowered, name, found, *operands)
    evaluate(parse(text), name, exact, *operands)
    programs.assert_near(found, exact)
    assert np.any(found)


def test_kernels_with_tiles_are_the_only_ones_in_streaming_mode() -> None:
    text = "".join(programs.fused_product_text("float", shape) for shape in programs.SHAPES)
    lowered = lower_text(text, target="sme512", options=Options(triple="aarch64-linux-gnu"))
    functions = [part for part in re.split(r"(?m)^define ", lowered)[1:] if "@__arm" not in part.partition("{")[0]]
    modes = {"call void @llvm.aarch64.sme." in part: "aarch64_pstate_sm_body" in part for part in functions}
    assert modes == {False: False, True: True}


def test_memory_is_allocated_outside_of_streaming_mode() -> None:
    text = programs.fused_product_text("bfloat", LARGE)
    lowered = lower_text(text, target="sme512", options=Options(triple="aarch64-linux-gnu"))
    functions = re.split(r"(?m)^define ", lowered)[1:]
    streaming = [part for part in functions if "aarch64_pstate_sm_body" in part]
    assert streaming
    assert not any(re.search(r"@(malloc|free)\(", part) for part in streaming)
    assert sum("call noalias ptr @malloc(" in part and "call void @free(" in part for part in functions) == 1
    programs.check_products(SME512, kinds=("bfloat",), shapes=(LARGE,)).close()


LARGE = (150, 170, 190)
SLICES = 64
MOVED_SLICES = f"""
define internal void @move(ptr %memory, i1 %stores) "aarch64_inout_za" "target-features"="+sme" {{
entry:
  br label %loop

loop:
  %slice = phi i32 [ 0, %entry ], [ %next, %end ]
  %offset = mul i32 %slice, {SLICES}
  %row = getelementptr i8, ptr %memory, i32 %offset
  br i1 %stores, label %store, label %load

store:
  call void @llvm.aarch64.sme.str(i32 %slice, ptr %row, i32 0)
  br label %end

load:
  call void @llvm.aarch64.sme.ldr(i32 %slice, ptr %row, i32 0)
  br label %end

end:
  %next = add i32 %slice, 1
  %done = icmp eq i32 %next, {SLICES}
  br i1 %done, label %return, label %loop

return:
  ret void
}}
declare void @llvm.aarch64.sme.ldr(i32, ptr, i32)
declare void @llvm.aarch64.sme.str(i32, ptr, i32)
"""
BLOCK_OF_ITS_OWN = f"""
define void @caller(ptr %c, ptr %x, ptr %y, ptr %za, ptr %saved, ptr %block) "target-features"="+sme" {{
  store ptr %saved, ptr %block
  %slices = getelementptr i8, ptr %block, i64 8
  store i64 {SLICES}, ptr %slices
  call void @llvm.aarch64.sme.za.enable()
  call void @move(ptr %za, i1 false)
  %address = ptrtoint ptr %block to i64
  call void @llvm.aarch64.sme.set.tpidr2(i64 %address)
  call void @PRODUCT(ptr %c, ptr %x, ptr %y)
  %lazy = call i64 @llvm.aarch64.sme.get.tpidr2()
  store i64 %lazy, ptr %block
  call void @llvm.aarch64.sme.za.disable()
  ret void
}}
declare void @llvm.aarch64.sme.za.enable()
declare void @llvm.aarch64.sme.za.disable()
declare void @llvm.aarch64.sme.set.tpidr2(i64)
declare i64 @llvm.aarch64.sme.get.tpidr2()
"""
BLOCK_OF_LLVM = """
define void @caller(ptr %c, ptr %x, ptr %y, ptr %za, ptr %saved, ptr %block) "aarch64_new_za" "target-features"="+sme" {
  call void @move(ptr %za, i1 false)
  call void @PRODUCT(ptr %c, ptr %x, ptr %y)
  call void @move(ptr %saved, i1 true)
  store i64 0, ptr %block
  ret void
}
"""


@pytest.mark.parametrize(
    ("caller", "shape", "compiler"),
    [
        (BLOCK_OF_ITS_OWN, (33, 42, 70), ""),
        (BLOCK_OF_LLVM, LARGE, ""),
        pytest.param(BLOCK_OF_ITS_OWN, LARGE, "clang-19", marks=pytest.mark.long),
        pytest.param(BLOCK_OF_LLVM, (33, 42, 70), "clang-19", marks=pytest.mark.long),
    ],
    ids=["saved", "restored", "saved, clang-19", "restored, clang-19"],
)
def test_za_that_a_caller_has_left_to_be_saved(caller: str, shape: tuple[int, int, int], compiler: str) -> None:
    """The kernel saves ZA to the caller's buffer and says so by a null TPIDR2_EL0; the caller may restore it."""
    text = programs.fused_product_text("float", shape)
    name = "_".join(["float", *map(str, shape)])
    code = SME512.compile(text + caller.replace("PRODUCT", name) + MOVED_SLICES, compiler=compiler)
    found, *operands = programs.fused_product_arguments("float", shape)
    exact = found.copy()
    za = np.random.default_rng(3).integers(0, 256, SLICES * 64).astype(np.uint8)
    saved, block = np.zeros_like(za), np.full(2, -1, np.int64)
    code.caller(found, *operands, za, saved, block)
    evaluate(parse(text), name, exact, *operands)
    programs.assert_near(found, exact)
    np.testing.assert_array_equal(saved, za)
    assert block[0] == 0
    code.close()


SATURATING = """
define void @{name}_{source}_{to}(ptr %x, ptr %y) {{
  %t = call token @llvm.tensor.load(ptr elementtype({source}) %x, <1 x i32> <i32 400>, FLAT, <1 x i32> <i32 400>)
  %v = call <400 x {source}> @llvm.tensor.tovector(token %t)
  %r = call <400 x {to}> @llvm.{name}.v400{to}.v400f{bits}(<400 x {source}> %v)
  %u = call token @llvm.tensor.typeinfo(<400 x {to}> %r, <1 x i32> <i32 400>, FLAT)
  call void @llvm.tensor.store(ptr elementtype({to}) %y, token %u, <1 x i32> <i32 400>)
  ret void
}}
declare <400 x {to}> @llvm.{name}.v400{to}.v400f{bits}(<400 x {source}>)
""".replace("FLAT", "<1 x i32> zeroinitializer, <1 x i32> zeroinitializer")


def test_saturating_conversions() -> None:
    """They are comparisons: LLVM crashes on the intrinsics in streaming mode."""
    edges = [2.0**7, 2.0**15, 2.0**31, 2.0**32, 2.0**63, 2.0**64, 1e300]
    numbers = np.resize([np.nan, np.inf, -np.inf, 0.9, -0.9, -1.5, *edges, *(-e for e in edges)], 400)
    cases = [
        (f"fpto{sign}i.sat", source, bits, f"i{width}")
        for sign in "su"
        for source, bits in (("half", 16), ("float", 32), ("double", 64))
        for width in (8, 16, 32, 64)
    ]
    text = "".join(SATURATING.format(name=n, source=s, bits=bits, to=to) for n, s, bits, to in cases)
    code, module = SME256.compile(text), parse(text)
    for name, source, _, to in cases:
        with np.errstate(over="ignore"):
            x = numbers.astype(programs.DTYPES[source])
        found, exact = np.zeros((2, 400), f"i{int(to[1:]) // 8}")
        code[f"{name}_{source}_{to}"](x, found)
        evaluate(module, f"{name}_{source}_{to}", x, exact)
        np.testing.assert_array_equal(found, exact, err_msg=f"{name} from {source} to {to}")
    code.close()
    assert not re.search(r"call .*\.sat\.", code.lowered)
