"""Machine code for Arm under QEMU computes what its programs mean."""

from __future__ import annotations

import numpy as np
import pytest

from tests.semantics.machines import programs
from tests.support.emulation import Machine
from tests.support.tools import quick
from tlx.evaluate import evaluate
from tlx.evaluate.values import BFLOAT16
from tlx.ir.parser.module import parse
from tlx.lower.pipeline import lower

NEON = Machine("neon", "qemu-aarch64 -cpu max")
SVE, SVE256, SVE512 = (
    Machine(name, f"qemu-aarch64 -cpu max,sve{bits}=on,sve-default-vector-length={bits // 8}")
    for name, bits in (("sve", 128), ("sve256", 256), ("sve512", 512))
)
MACHINES = [NEON, SVE, SVE256, SVE512]


@pytest.mark.parametrize("machine", MACHINES, ids=str)
def test_products(machine: Machine) -> None:
    code = programs.check_products(machine)
    for name in ("bfmmla", "smmla", "ummla", "usmmla"):
        assert name in code.lowered
    code.close()


@pytest.mark.parametrize("machine", [NEON, SVE256], ids=str)
def test_products_without_matrix_instructions(machine: Machine) -> None:
    features = ("-i8mm", "-bf16")
    code = programs.check_products(Machine(machine.target, machine.emulator, features))
    assert "sdot" in code.lowered
    assert "mmla" not in code.lowered
    code.close()


@pytest.mark.parametrize("machine", quick([NEON, SVE256, SVE512, SVE], 2), ids=str)
def test_unoptimised_products(machine: Machine) -> None:
    programs.check_products(machine, shapes=programs.FEW_SHAPES, opt_level=0).close()


@pytest.mark.parametrize("machine", [NEON, SVE512], ids=str)
def test_threads(machine: Machine) -> None:
    code = programs.check_products(machine, shapes=programs.FEW_SHAPES, threads=True)
    assert "GOMP_parallel" in code.lowered
    code.close()


@pytest.mark.parametrize("machine", MACHINES, ids=str)
def test_layers(machine: Machine) -> None:
    programs.check_layers(machine)


@pytest.mark.parametrize("machine", MACHINES, ids=str)
def test_half(machine: Machine) -> None:
    programs.check_half(machine.compile)


@pytest.mark.parametrize("machine", [NEON, SVE256], ids=str)
def test_tensor_language(machine: Machine) -> None:
    programs.check_attention(machine)


@pytest.mark.parametrize("machine", quick([NEON, SVE512, SVE256, SVE], 2), ids=str)
def test_run_time_sizes(machine: Machine) -> None:
    programs.check_dynamic(machine, programs.HALVES[machine in (SVE512, SVE)])


@pytest.mark.parametrize("machine", MACHINES, ids=str)
def test_random_programs(machine: Machine) -> None:
    programs.check_random_programs(machine, range(3))


INTERLEAVED = """
define void @f(ptr %x, ptr %y, ptr %c) {
  %a = call token @llvm.tensor.load(ptr elementtype(bfloat) %x, <3 x i32> <i32 2, i32 2, i32 32>,
      <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> zeroinitializer, <3 x i32> zeroinitializer)
  %b = call token @llvm.tensor.load(ptr elementtype(bfloat) %y, <3 x i32> <i32 5, i32 32, i32 2>,
      <3 x i32> <i32 2, i32 1, i32 0>, <3 x i32> zeroinitializer, <3 x i32> zeroinitializer)
  %p = call <20 x float> @llvm.tensor.matmul(token %a, token %b)
  store <20 x float> %p, ptr %c, align 4
  ret void
}
"""


@pytest.mark.parametrize("target", ["neon", "sve256", "sve512"])
def test_operands_are_interleaved_in_strips_narrower_than_a_vector(target: str) -> None:
    random = np.random.default_rng(2)
    x, y = (random.integers(-4, 5, count).astype(BFLOAT16) for count in (128, 320))
    results = [np.full(20, np.nan, np.float32) for _ in range(2)]
    for module, result in zip((parse(INTERLEAVED), lower(parse(INTERLEAVED), target)), results, strict=True):
        evaluate(module, "f", x, y, result)
    meant, found = results
    np.testing.assert_array_equal(found, meant)
