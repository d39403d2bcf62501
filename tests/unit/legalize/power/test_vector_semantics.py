"""The meaning of Power's vector instructions, compared bit by bit with QEMU's, in either byte order."""

from __future__ import annotations

from typing import Final

import numpy as np
import pytest

from tests.support.emulation import Machine as EmulatedMachine
from tlx.evaluate import Machine
from tlx.ir.parser.module import parse

FEATURES: Final = '"target-features"="+vsx,+altivec,+power8-vector,+power9-vector"'
OPERANDS: Final = {
    "vmsumubm": "<16 x i8>",
    "vmsummbm": "<16 x i8>",
    "vmsumuhm": "<8 x i16>",
    "vmsumshm": "<8 x i16>",
}


def _sums(name: str) -> str:
    operand, intrinsic = OPERANDS[name], f"@llvm.ppc.altivec.{name}"
    return f"""
declare <4 x i32> {intrinsic}({operand}, {operand}, <4 x i32>)
define void @{name}(ptr %acc, ptr %lhs, ptr %rhs) {FEATURES} {{
  %c = load <4 x i32>, ptr %acc, align 4
  %a = load {operand}, ptr %lhs, align 1
  %b = load {operand}, ptr %rhs, align 1
  %r = call <4 x i32> {intrinsic}({operand} %a, {operand} %b, <4 x i32> %c)
  store <4 x i32> %r, ptr %acc, align 4
  ret void
}}
"""


HALVES: Final = f"""
declare <4 x float> @llvm.ppc.vsx.xvcvhpsp(<8 x i16>)
declare <4 x float> @llvm.ppc.vsx.xvcvsphp(<4 x float>)
define void @widen(ptr %to, ptr %from) {FEATURES} {{
  %h = load <4 x i16>, ptr %from, align 2
  %w = zext <4 x i16> %h to <4 x i32>
  %x = bitcast <4 x i32> %w to <8 x i16>
  %r = call <4 x float> @llvm.ppc.vsx.xvcvhpsp(<8 x i16> %x)
  store <4 x float> %r, ptr %to, align 4
  ret void
}}
define void @narrow(ptr %to, ptr %from) {FEATURES} {{
  %x = load <4 x float>, ptr %from, align 4
  %r = call <4 x float> @llvm.ppc.vsx.xvcvsphp(<4 x float> %x)
  %w = bitcast <4 x float> %r to <4 x i32>
  %h = trunc <4 x i32> %w to <4 x i16>
  store <4 x i16> %h, ptr %to, align 2
  ret void
}}
"""
TEXT: Final = "".join(map(_sums, OPERANDS)) + HALVES


@pytest.mark.parametrize("emulator", ["qemu-ppc64le -cpu power9", "qemu-ppc64 -cpu power9"])
def test_vectors(emulator: str) -> None:
    emulated, evaluated = EmulatedMachine("generic", emulator).compile(TEXT, opt_level=1), Machine(parse(TEXT))
    random = np.random.default_rng(1)
    for name, operand in OPERANDS.items():
        kind = np.int8 if "i8" in operand else np.int16
        for _ in range(20):
            low, size = np.iinfo(kind).min, 16 // np.dtype(kind).itemsize
            acc = random.integers(-(1 << 31), 1 << 31, 4).astype(np.int32)
            lhs, rhs = random.integers(low, -low, (2, size)).astype(kind)
            lhs[:4], rhs[:4] = low, (low, -1, low, -1)
            there, here = acc.copy(), acc.copy()
            emulated[name](there, lhs, rhs)
            evaluated.call(name, here, lhs, rhs)
            np.testing.assert_array_equal(here, there, name)
    halves = np.array([0, 1, 0x3FF, 0x400, 0x8001, 0x7BFF, 0xFC00, 0x3C01], np.uint16).view(np.int16)
    floats = np.array([1e-8, 65519, 65520, -1e9, 6.1e-5, 2.0**-25, np.inf, -0.0], np.float32)
    for start in (0, 4):
        for function, numbers, result in (("widen", halves, np.float32), ("narrow", floats, np.int16)):
            there, here = np.zeros(4, result), np.zeros(4, result)
            emulated[function](there, numbers[start : start + 4])
            evaluated.call(function, here, numbers[start : start + 4])
            np.testing.assert_array_equal(here, there, function)
    emulated.close()
