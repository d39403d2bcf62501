"""Machine code for Power's vectors under QEMU computes what its programs mean, in either byte order.

QEMU 10.0 folds `xxsel` of a register of ones wrongly if it knows the register; it does not where each instruction is a
block of its own.
"""

from __future__ import annotations

import re

import numpy as np
import pytest

from tests.semantics.machines import programs
from tests.support.emulation import Machine
from tests.support.tools import quick
from tlx.evaluate import evaluate
from tlx.evaluate.values import BFLOAT16
from tlx.ir.parser.module import parse

POWER9 = Machine("vsx", "qemu-ppc64le -one-insn-per-tb -cpu power9", ("+power9-vector",))
POWER8 = Machine("vsx", "qemu-ppc64le -one-insn-per-tb -cpu power8")
BIG_ENDIAN = Machine("vsx", "qemu-ppc64 -one-insn-per-tb -cpu power9", ("+power9-vector",))
BIG_ENDIAN_POWER8 = Machine("vsx", "qemu-ppc64 -one-insn-per-tb -cpu power8")
MACHINES = [POWER9, BIG_ENDIAN, POWER8]


@pytest.mark.parametrize("machine", MACHINES, ids=str)
def test_products(machine: Machine) -> None:
    code = programs.check_products(machine)
    for name in ("vmsumubm", "vmsummbm"):
        assert name in code.lowered
    assert ("xvcvhpsp" in code.lowered) == (machine != POWER8)
    code.close()


@pytest.mark.parametrize("machine", quick([BIG_ENDIAN, POWER9, POWER8]), ids=str)
def test_unoptimised_products(machine: Machine) -> None:
    programs.check_products(machine, shapes=programs.FEW_SHAPES, opt_level=0).close()


_ROUNDED = """
define void @f(ptr noalias %c, ptr noalias %a, ptr noalias %b) {
  %x = call token @llvm.tensor.load(ptr elementtype(bfloat) %a, <2 x i32> <i32 1, i32 3>, LAYOUT)
  %y = call token @llvm.tensor.load(ptr elementtype(bfloat) %b, <2 x i32> <i32 3, i32 32>, LAYOUT)
  %p = call <32 x bfloat> @llvm.tensor.matmul(token %x, token %y)
  store <32 x bfloat> %p, ptr %c, align 2
  ret void
}
""".replace("LAYOUT", "<2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer")


@pytest.mark.parametrize("machine", [BIG_ENDIAN, POWER9], ids=str)
def test_product_rounded_to_bfloat(machine: Machine) -> None:
    """Even and odd columns of B are kept apart; which half of a word they are depends on the order of bytes."""
    random = np.random.default_rng(2)
    a, b = (random.integers(-4, 5, count).astype(BFLOAT16) for count in (3, 96))
    c = np.zeros(32, BFLOAT16)
    code = machine.compile(_ROUNDED)
    code.f(c, a, b)
    np.testing.assert_array_equal(c.astype(np.float32), a.astype(np.float32) @ b.astype(np.float32).reshape(3, 32))
    code.close()


def test_the_evaluator_numbers_lanes_as_the_machine_does() -> None:
    """Words of a big-endian machine have the even column in their upper half."""
    random = np.random.default_rng(3)
    a, b = (random.integers(-4, 5, count).astype(BFLOAT16) for count in (3, 96))
    expected, found = np.zeros(32, BFLOAT16), np.zeros(32, BFLOAT16)
    text = 'target datalayout = "E-m:e-i64:64-n32:64"\n' + _ROUNDED
    evaluate(parse(text), "f", expected, a, b)
    code = BIG_ENDIAN.compile(text)
    assert re.search(r"bitcast <8 x i16> \S+ to <4 x i32>", code.lowered)
    evaluate(parse(code.lowered), "f", found, a, b)
    np.testing.assert_array_equal(found, expected)
    code.close()


_LOGARITHMS = """
define void @f(ptr noalias %y, ptr noalias %x) {
  %t = call token @llvm.tensor.load(ptr elementtype(half) %x, <2 x i32> <i32 211, i32 496>, LAYOUT, <2 x i32> ROWS)
  %v = call <104656 x half> @llvm.tensor.tovector(token %t)
  %w = call <104656 x half> @llvm.log10.v104656f16(<104656 x half> %v)
  %u = call token @llvm.tensor.typeinfo(<104656 x half> %w, <2 x i32> <i32 211, i32 496>, LAYOUT)
  call void @llvm.tensor.store(ptr elementtype(half) %y, token %u, <2 x i32> ROWS)
  ret void
}
""".replace("LAYOUT", "<2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer").replace("ROWS", "<i32 0, i32 527>")


@pytest.mark.parametrize("machine", [BIG_ENDIAN_POWER8, POWER8], ids=str)
def test_constants_of_a_loop_that_needs_all_registers(machine: Machine) -> None:
    """LLVM's elimination of copies in place of spills left a constant overwritten after the first iteration."""
    x = np.random.default_rng(4).uniform(0.1, 50, 211 * 527).astype(np.float16)
    y = np.zeros_like(x)
    code = machine.compile(_LOGARITHMS)
    code.f(y, x)
    rows = [array.reshape(211, 527)[:, :496].astype(np.float32) for array in (y, x)]
    np.testing.assert_allclose(rows[0], np.log10(rows[1]), rtol=2**-10, atol=2**-13)
    code.close()


def test_threads() -> None:
    code = programs.check_products(POWER9, shapes=programs.FEW_SHAPES, threads=True)
    assert "GOMP_parallel" in code.lowered
    code.close()


@pytest.mark.parametrize("machine", quick([BIG_ENDIAN, POWER9, POWER8]), ids=str)
def test_layers(machine: Machine) -> None:
    programs.check_layers(machine)


@pytest.mark.parametrize("machine", quick([POWER9, BIG_ENDIAN]), ids=str)
def test_tensor_language(machine: Machine) -> None:
    programs.check_attention(machine)


@pytest.mark.parametrize("machine", quick([POWER9, BIG_ENDIAN]), ids=str)
def test_run_time_sizes(machine: Machine) -> None:
    programs.check_dynamic(machine, programs.HALVES[machine == BIG_ENDIAN])


@pytest.mark.parametrize("machine", MACHINES, ids=str)
def test_random_programs(machine: Machine) -> None:
    programs.check_random_programs(machine, range(3))
