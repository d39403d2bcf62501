"""Machine code for Power's vectors under QEMU computes what its programs mean, in either byte order.

QEMU 10.0 folds `xxsel` of a register of ones wrongly if it knows the register; it does not where each instruction is a
block of its own.
"""

from __future__ import annotations

import pytest

from tests.emulation import Machine
from tests.semantics.machines import programs
from tests.tools import quick

POWER9 = Machine("vsx", "qemu-ppc64le -one-insn-per-tb -cpu power9", ("+power9-vector",))
POWER8 = Machine("vsx", "qemu-ppc64le -one-insn-per-tb -cpu power8")
BIG_ENDIAN = Machine("vsx", "qemu-ppc64 -one-insn-per-tb -cpu power9", ("+power9-vector",))
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
    programs.check_products(machine, opt_level=0).close()


def test_threads() -> None:
    code = programs.check_products(POWER9, threads=True)
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
    programs.check_dynamic(machine)


@pytest.mark.parametrize("machine", MACHINES, ids=str)
def test_random_programs(machine: Machine) -> None:
    programs.check_random_programs(machine, range(3))
