"""Machine code for RISC-V's vectors under QEMU computes what its programs mean, also on longer registers."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.semantics.machines import programs
from tests.support.emulation import Machine
from tests.support.tools import quick

_HALF = ("+zvfhmin",)
RVV, RVV256, RVV512 = (
    Machine(name, f"qemu-riscv64 -cpu rv64,v=true,zvfh=true,vext_spec=v1.0,vlen={bits}", _HALF)
    for name, bits in (("rvv", 128), ("rvv256", 256), ("rvv512", 512))
)
LONGER = Machine("rvv", "qemu-riscv64 -cpu rv64,v=true,vext_spec=v1.0,vlen=512")
MACHINES = [RVV, RVV256, RVV512, LONGER]


@pytest.mark.parametrize("machine", MACHINES, ids=str)
def test_products(machine: Machine) -> None:
    programs.check_products(machine).close()


@pytest.mark.parametrize("machine", quick([RVV256, RVV, RVV512]), ids=str)
def test_unoptimised_products(machine: Machine) -> None:
    programs.check_products(machine, shapes=programs.FEW_SHAPES, opt_level=0).close()


def test_threads() -> None:
    code = programs.check_products(RVV512, shapes=programs.FEW_SHAPES, threads=True)
    assert "GOMP_parallel" in code.lowered
    code.close()


@pytest.mark.parametrize("machine", quick([RVV256, RVV, RVV512, LONGER], 2), ids=str)
def test_layers(machine: Machine) -> None:
    programs.check_layers(machine)


@pytest.mark.parametrize("machine", quick([RVV256, RVV512, RVV]), ids=str)
def test_half(machine: Machine) -> None:
    programs.check_half(replace(machine, features=("+zvfh", *_HALF)).compile)


@pytest.mark.parametrize("machine", quick([RVV256, RVV]), ids=str)
def test_tensor_language(machine: Machine) -> None:
    programs.check_attention(machine)


@pytest.mark.parametrize("machine", quick([RVV512, RVV]), ids=str)
def test_run_time_sizes(machine: Machine) -> None:
    programs.check_dynamic(machine, programs.HALVES[machine == RVV])


@pytest.mark.parametrize("machine", MACHINES, ids=str)
def test_random_programs(machine: Machine) -> None:
    programs.check_random_programs(machine, range(3))
