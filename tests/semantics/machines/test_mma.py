"""Machine code for Power10's outer products under QEMU computes what its programs mean."""

from __future__ import annotations

from typing import Final

import pytest

from tests.semantics.machines import programs
from tests.support.emulation import Machine

MMA: Final = Machine("mma", "qemu-ppc64le -one-insn-per-tb -cpu power10")
INSTRUCTIONS: Final = ("xvf32gerpp", "xvf64gerpp", "xvbf16ger2pp", "xvf16ger2pp", "xvi8ger4pp")


def test_products() -> None:
    code = programs.check_products(MMA)
    for name in INSTRUCTIONS:
        assert name in code.lowered
    code.close()


def test_unoptimised_products() -> None:
    programs.check_products(MMA, shapes=programs.FEW_SHAPES, opt_level=0).close()


def test_threads() -> None:
    code = programs.check_products(MMA, shapes=programs.FEW_SHAPES, threads=True)
    assert "GOMP_parallel" in code.lowered
    code.close()


def test_layers() -> None:
    programs.check_layers(MMA)


def test_tensor_language() -> None:
    programs.check_attention(MMA)


@pytest.mark.long
def test_run_time_sizes() -> None:
    """Of products: all other programs are those of `vsx`."""
    names = ("matmul_float_float_float_rr", "usmma_i8_i8_i32_rr", "matmul_bfloat_bfloat_float_rr")
    programs.check_dynamic(MMA, names)


def test_random_programs() -> None:
    programs.check_random_programs(MMA, range(3))
