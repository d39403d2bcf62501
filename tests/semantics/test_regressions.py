"""Regressions: minimal programs that were once miscompiled."""

from __future__ import annotations

from typing import Literal
from unittest.mock import Mock

import ml_dtypes
import numpy as np
import pytest

import tlx
from tlx.evaluate import Machine
from tlx.ir.parser.module import parse, parse_fully
from tlx.ir.types import X86_AMX
from tlx.llvm.codegen import emit_code
from tlx.lower.options import Options
from tlx.lower.pipeline import lower
from tlx.target.installed import matrix_emulations

BATCH_INNERMOST = """
define void @NAME(ptr noalias %c, ptr noalias %a, ptr noalias %b) {
  %x = call token @llvm.tensor.load(ptr elementtype(double) %a, <3 x i32> <i32 40, i32 40, i32 2>,
                                    <3 x i32> <i32 1, i32 2, i32 0>,
                                    <3 x i32> zeroinitializer, <3 x i32> zeroinitializer)
  %y = call token @llvm.tensor.load(ptr elementtype(double) %b, <3 x i32> <i32 2, i32 40, i32 40>,
                                    <3 x i32> <i32 0, i32 1, i32 2>,
                                    <3 x i32> zeroinitializer, <3 x i32> zeroinitializer)
  %m = call <3200 x double> @llvm.tensor.matmul(token %x, token %y)
  store <3200 x double> %m, ptr %c
  ret void
}
"""


def test_two_functions_with_heap_buffers() -> None:
    """The second function found the first one's `malloc` declared without parameters."""
    text = BATCH_INNERMOST.replace("NAME", "f") + BATCH_INNERMOST.replace("NAME", "g")
    module = lower(parse(text), "generic", options=Options(stop_after="to-2d"))
    generator = np.random.default_rng(3)
    a = generator.integers(-9, 10, (40, 40, 2)).astype(np.float64)
    b = generator.integers(-9, 10, (2, 40, 40)).astype(np.float64)
    c = np.zeros((2, 40, 40))
    for name in ("f", "g"):
        c[:] = np.nan
        Machine(module).call(name, c, a, b)
        np.testing.assert_array_equal(c, np.moveaxis(a, 2, 0) @ b)


@pytest.mark.parametrize("element", ["double", "bfloat"])
def test_only_tile_kernels_are_optnone(element: str) -> None:
    """LLVM cannot generate code for some vector code in optnone functions; scalarised tiles need it."""
    text = f"""
define void @f(ptr noalias %c, ptr noalias %a, ptr noalias %b) {{
  %x = call token @llvm.tensor.load(ptr elementtype({element}) %a, <2 x i32> <i32 32, i32 64>, <2 x i32> <i32 0, i32 1>,
                                    <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %y = call token @llvm.tensor.load(ptr elementtype({element}) %b, <2 x i32> <i32 64, i32 32>, <2 x i32> <i32 0, i32 1>,
                                    <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <1024 x {element}> @llvm.tensor.matmul(token %x, token %y)
  store <1024 x {element}> %m, ptr %c
  ret void
}}
"""
    module = lower(parse(text), "amx", options=Options(emulate_matrix=True))
    for function in module.functions:
        tiled = any(instruction.type == X86_AMX for instruction in function.instructions())
        assert ("optnone" in function.signature.attributes) == tiled, function.name


@pytest.mark.parametrize(("element", "pitch"), [("i8", 65), ("i8", 66), ("i8", 67), ("i8", 68), ("bfloat", 65)])
def test_emulated_tiles_with_rows_at_any_byte(element: str, pitch: int) -> None:
    """LLVM's scalarisation of tile loads rounds the bytes between two rows down to whole words."""
    text = f"""
define void @f(ptr noalias %c, ptr noalias %a, ptr noalias %b) {{
  %x = call token @llvm.tensor.load(ptr elementtype({element}) %a, <2 x i32> <i32 32, i32 64>, <2 x i32> <i32 0, i32 1>,
                                    <2 x i32> zeroinitializer, <2 x i32> <i32 0, i32 {pitch}>)
  %y = call token @llvm.tensor.load(ptr elementtype({element}) %b, <2 x i32> <i32 64, i32 32>, <2 x i32> <i32 0, i32 1>,
                                    <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <1024 x {"i32" if element == "i8" else "float"}> @llvm.tensor.matmul(token %x, token %y)
  store <1024 x {"i32" if element == "i8" else "float"}> %m, ptr %c
  ret void
}}
"""
    inputs, output = (np.int8, np.int32) if element == "i8" else (ml_dtypes.bfloat16, np.float32)
    generator = np.random.default_rng(pitch)
    a = generator.integers(-9, 10, (32, pitch)).astype(inputs)
    b = generator.integers(-9, 10, (64, 32)).astype(inputs)
    c = np.zeros((32, 32), output)
    compiled = tlx.compile(text, "amx", opt_level=0, options=Options(emulate_matrix=True))
    assert "tileloadd64" in compiled.lowered
    compiled.f(c, a, b)
    np.testing.assert_array_equal(c, a[:, :64].astype(output) @ b.astype(output))


def test_amx_module_with_permission_compiles() -> None:
    """The call in the constructor had no callee, on which the judgement of stage 3 stumbled."""
    dims = "<2 x i32> <i32 64, i32 64>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer"
    load = f"call token @llvm.tensor.load(ptr elementtype(bfloat) %{{}}, {dims})"
    text = f"""
define void @f(ptr noalias %c, ptr noalias %a, ptr noalias %b) {{
  %x = {load.format("a")}
  %y = {load.format("b")}
  %m = call <4096 x float> @llvm.tensor.matmul(token %x, token %y)
  store <4096 x float> %m, ptr %c
  ret void
}}
"""
    compiled = tlx.compile(text, "amx", opt_level=0, options=Options(emulate_matrix=True))
    assert "tlx.amx.permission" in compiled.lowered


@pytest.mark.parametrize("rows", [3, 5, 6, 7, 11])
def test_transpose_of_few_rows_compiles(rows: int) -> None:
    """LLVM could not select instructions for rows that were interleaved with undefined ones."""
    text = f"""
define void @f(ptr noalias %to, ptr noalias %from) {{
  %x = call token @llvm.tensor.load(ptr elementtype(float) %from, <2 x i32> <i32 {rows}, i32 700>,
                                    <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %v = call <{rows * 700} x float> @llvm.tensor.transpose(token %x, <2 x i32> <i32 1, i32 0>)
  store <{rows * 700} x float> %v, ptr %to
  ret void
}}
"""
    assert emit_code(str(lower(parse(text), "avx512")), "obj", 2)


@pytest.mark.parametrize("element", ["float", "bfloat"])
@pytest.mark.parametrize("target", ["generic", "native"])
def test_round_where_llvm_mistakes_a_merged_sign(element: str, target: str) -> None:
    """LLVM 19 to 22 compute a wrong vpternlog for a select between a number and one that got its sign."""
    text = f"""
define void @f(ptr %x, ptr %y) {{
  %t = call token @llvm.tensor.load(ptr elementtype({element}) %x, <1 x i32> <i32 5>, <1 x i32> <i32 0>,
                                    <1 x i32> zeroinitializer, <1 x i32> zeroinitializer)
  %v = call <5 x {element}> @llvm.tensor.tovector(token %t)
  %r = call <5 x {element}> @llvm.round.v5{"f32" if element == "float" else "bf16"}(<5 x {element}> %v)
  store <5 x {element}> %r, ptr %y, align 2
  ret void
}}
declare <5 x {element}> @llvm.round.v5{"f32" if element == "float" else "bf16"}(<5 x {element}>)
"""
    wide = np.array([14.0, -2.5, 0.25, -0.25, 1e10], np.float32)
    x = wide.astype(np.float32 if element == "float" else ml_dtypes.bfloat16)
    y = np.zeros_like(x)
    tlx.compile(text, target=target).f(x, y)
    got = y.astype(np.float32)
    np.testing.assert_array_equal(got[:4], [14.0, -3.0, 0.0, -0.0])
    assert np.array_equal(np.signbit(got), np.signbit(wide))


def test_constants_of_truth_values_take_a_byte_each() -> None:
    text = """
define void @f(ptr noalias %x, ptr noalias %y) {
  %t = call token @llvm.tensor.load(ptr elementtype(i32) %x, <1 x i32> <i32 4>, <1 x i32> <i32 0>,
                                    <1 x i32> zeroinitializer, <1 x i32> zeroinitializer)
  %v = call <4 x i32> @llvm.tensor.tovector(token %t)
  %c = icmp sgt <4 x i32> %v, zeroinitializer
  %d = xor <4 x i1> %c, <i1 true, i1 false, i1 true, i1 false>
  %r = select <4 x i1> %d, <4 x i32> %v, <4 x i32> <i32 1, i32 2, i32 3, i32 4>
  store <4 x i32> %r, ptr %y
  ret void
}
"""
    x = np.array([5, 6, -7, -8], np.int32)
    for stage in (None, "to-2d", "legalize"):
        module = parse(text) if stage is None else lower(parse(text), "generic", options=Options(stop_after=stage))
        y = np.zeros(4, np.int32)
        Machine(module).call("f", x, y)
        np.testing.assert_array_equal(y, [1, 6, -7, 4])


@pytest.mark.parametrize("target", ["generic", "avx2", "avx512", "amx"])
@pytest.mark.parametrize("operation", ["umma", "smma", "usmma", "summa"])
def test_wide_sums_of_mixed_signs_are_negative_too(operation: str, target: str) -> None:
    """Sums of signed by unsigned bytes, added up in i32, were widened to i64 as if they were unsigned."""
    text = f"""
define void @f(ptr noalias %c, ptr noalias %a, ptr noalias %b) {{
  %acc = call token @llvm.tensor.typeinfo(<6 x i64> zeroinitializer, <2 x i32> <i32 2, i32 3>, <2 x i32> <i32 0, i32 1>,
                                          <2 x i32> zeroinitializer)
  %x = call token @llvm.tensor.load(ptr elementtype(i8) %a, <2 x i32> <i32 2, i32 4>, <2 x i32> <i32 0, i32 1>,
                                    <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %y = call token @llvm.tensor.load(ptr elementtype(i8) %b, <2 x i32> <i32 4, i32 3>, <2 x i32> <i32 0, i32 1>,
                                    <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <6 x i64> @llvm.tensor.{operation}(token %acc, token %x, token %y)
  store <6 x i64> %m, ptr %c
  ret void
}}
"""
    signs = {"umma": "uu", "smma": "ss", "usmma": "us", "summa": "su"}[operation]
    generator = np.random.default_rng(7)
    a, b = (generator.integers(-128, -1, shape, dtype=np.int8) for shape in ((2, 4), (4, 3)))
    left, right = (x.view(np.uint8) if sign == "u" else x for x, sign in zip((a, b), signs, strict=True))
    c = np.zeros((2, 3), np.int64)
    module = lower(parse(text), target, options=Options(stop_after="to-tiles"))
    Machine(parse_fully(str(module))).call("f", c, a, b)
    np.testing.assert_array_equal(c, left.astype(np.int64) @ right.astype(np.int64))


SUMS = """
define void @f(ptr noalias %c, ptr noalias %a, ptr noalias %b) {
  %x = call token @llvm.tensor.load(ptr elementtype(i8) %a, <3 x i32> <i32 COUNT, i32 96, i32 DEPTH>,
                                    <3 x i32> <i32 0, i32 1, i32 2>,
                                    <3 x i32> zeroinitializer, <3 x i32> zeroinitializer)
  %y = call token @llvm.tensor.load(ptr elementtype(i8) %b, <3 x i32> <i32 COUNT, i32 DEPTH, i32 64>,
                                    <3 x i32> <i32 0, i32 1, i32 2>,
                                    <3 x i32> zeroinitializer, <3 x i32> zeroinitializer)
  %m = call <6144 x i32> @llvm.tensor.contract(token %x, token %y, <2 x i32> <i32 0, i32 2>, <2 x i32> <i32 0, i32 1>)
  store <6144 x i32> %m, ptr %c
  ret void
}
"""


@pytest.mark.parametrize(("count", "depth"), [(1, 64), (1, 128), (3, 64), (3, 128), (3, 70)])
def test_sums_on_tiles_of_several_rows_and_panels(count: int, depth: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """LLVM's code generation at -O0 died of phis of tiles that come from phis, where tiles have no numbers."""
    text = SUMS.replace("COUNT", str(count)).replace("DEPTH", str(depth))
    registers = lower(parse(text), "amx")
    with monkeypatch.context() as patch:
        patch.setattr("tlx.legalize.x86.amx.number_tiles", Mock())
        values = lower(parse(text), "amx")
    phis = [p for f in values.functions for p in f.instructions() if p.opcode == "phi" and p.type == X86_AMX]
    names = {phi.result for phi in phis}
    assert phis
    assert not any(str(value)[1:] in names for phi in phis for value, _ in phi.incoming)
    assert emit_code(str(values), "obj", 0)
    assert emit_code(str(registers), "obj", 0)
    generator = np.random.default_rng(depth)
    a = generator.integers(-128, 128, (count, 96, depth)).astype(np.int8)
    b = generator.integers(-128, 128, (count, depth, 64)).astype(np.int8)
    for module in (values, registers):
        c = np.zeros((96, 64), np.int32)
        Machine(module).call("f", c, a, b)
        np.testing.assert_array_equal(c, np.einsum("gmk,gkn->mn", a.astype(np.int32), b.astype(np.int32)))


def test_a_loop_carries_no_bfloats_that_llvm_cannot() -> None:
    """Without optimisation LLVM 22 dies over 33 bfloats across blocks, for machines with AVX512-BF16."""
    text = """
define void @f(ptr noalias %c, ptr noalias %x, i32 %n) {
entry:
  %a = load <33 x bfloat>, ptr %x
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %next, %loop ]
  %v = phi <33 x bfloat> [ %a, %entry ], [ %w, %loop ]
  %t = call token @llvm.tensor.typeinfo(<33 x bfloat> %v, <2 x i32> <i32 3, i32 11>, <2 x i32> <i32 0, i32 1>,
                                        <2 x i32> zeroinitializer)
  %w = call <33 x bfloat> @llvm.tensor.relu(token %t)
  %next = add i32 %i, 1
  %go = icmp slt i32 %next, %n
  br i1 %go, label %loop, label %end
end:
  store <33 x bfloat> %w, ptr %c
  ret void
}
"""
    lowered = str(lower(parse(text), "amx", options=Options(emulate_matrix=True)))
    assert "phi <33 x bfloat>" not in lowered
    (emulation,) = matrix_emulations()
    assert emit_code(lowered, "obj", 0, "cooperlake", llvm_options=emulation.llvm_options)
    x = np.linspace(-2, 2, 33).astype(ml_dtypes.bfloat16)
    c = np.zeros_like(x)
    tlx.compile(text, "generic")(c, x, 3)
    np.testing.assert_array_equal(c, np.maximum(x, 0))


@pytest.mark.parametrize("threads", ["none", "openmp"])
def test_no_division_by_zero_before_the_first_tile(threads: Literal["none", "openmp"]) -> None:
    """The sums that wait before the first tile of a matrix unit are zeros, by which its epilogue divided."""
    dims = "<2 x i32> <i32 64, i32 64>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer"
    text = f"""
define void @f(ptr noalias %c, ptr noalias %a, ptr noalias %b) {{
  %x = call token @llvm.tensor.load(ptr elementtype(i8) %a, {dims})
  %y = call token @llvm.tensor.load(ptr elementtype(i8) %b, {dims})
  %m = call <4096 x i32> @llvm.tensor.matmul(token %x, token %y)
  %n = insertelement <4096 x i32> poison, i32 1000, i32 0
  %s = shufflevector <4096 x i32> %n, <4096 x i32> poison, <4096 x i32> zeroinitializer
  %q = sdiv <4096 x i32> %s, %m
  store <4096 x i32> %q, ptr %c
  ret void
}}
"""
    options = Options(stop_after="to-tiles", threads=threads, thread_cycles=100)
    a, b = np.ones((64, 64), np.int8), np.full((64, 64), 2, np.int8)
    c = np.zeros((64, 64), np.int32)
    Machine(lower(parse(text), "amx", options=options)).call("f", c, a, b)
    np.testing.assert_array_equal(c, 1000 // 128)


def test_names_of_blocks_stay_short_enough_for_llvm() -> None:
    """Four hundred carried tensors, each with a copy that is inlined: LLVM cut the names of the blocks between them."""
    count, numbers = 400, range(400)
    label = "n" * 1015
    lines = [f"define void @f(ptr noalias %x, ptr noalias %y) {{\n{label}:"]
    lines += [f"  %p{i} = getelementptr float, ptr %x, i64 {i * 512}" for i in numbers]
    lines += [f"  %i{i} = load <512 x float>, ptr %p{i}" for i in numbers]
    lines += [f"  br label %loop\nloop:\n  %k = phi i32 [ 0, %{label} ], [ %next, %loop ]"]
    lines += [f"  %a{i} = phi <512 x float> [ %i{i}, %{label} ], [ %b{i}, %loop ]" for i in numbers]
    lines += [f"  %b{i} = fadd <512 x float> %a{i}, %a{(i + 1) % count}" for i in numbers]
    lines += [
        "  %next = add i32 %k, 1\n  %again = icmp slt i32 %next, 2\n  br i1 %again, label %loop, label %exit\nexit:"
    ]
    lines += [
        f"  %q{i} = getelementptr float, ptr %y, i64 {i * 512}\n  store <512 x float> %b{i}, ptr %q{i}" for i in numbers
    ]
    shape = "<1 x i32> <i32 512>, <1 x i32> zeroinitializer, <1 x i32> zeroinitializer"
    lines += [
        f"  %t = call token @llvm.tensor.typeinfo(<512 x float> %b0, {shape})",
        "  call void @llvm.tensor.store(ptr %y, token %t, <1 x i32> zeroinitializer)\n  ret void\n}\n",
    ]
    x = np.random.default_rng(5).integers(-9, 10, (count, 512)).astype(np.float32)
    y = np.zeros_like(x)
    tlx.compile("\n".join(lines), "generic").f(x, y)
    assert np.array_equal(y, x + 2 * np.roll(x, -1, axis=0) + np.roll(x, -2, axis=0))
