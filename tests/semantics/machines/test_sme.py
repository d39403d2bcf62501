"""Machine code for Arm's Scalable Matrix Extension under QEMU computes what its programs mean.

Streaming mode has longer vectors than the processor otherwise, and lacks the instructions of FEAT_SME_FA64.
"""

from __future__ import annotations

import re

import numpy as np
import pytest

from tests.emulation import Machine
from tests.semantics.machines import programs
from tests.tools import quick
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
    programs.check_products(machine, opt_level=0).close()


@pytest.mark.long
def test_threads() -> None:
    code = programs.check_products(SME512, threads=True)
    assert "GOMP_parallel" in code.lowered
    code.close()


@pytest.mark.parametrize("machine", quick(MACHINES, 1), ids=str)
def test_layers(machine: Machine) -> None:
    programs.check_layers(machine)


def test_tensor_language() -> None:
    programs.check_attention(SME512)


@pytest.mark.long
@pytest.mark.parametrize("machine", [SME512, SME], ids=str)
def test_run_time_sizes(machine: Machine) -> None:
    programs.check_dynamic(machine)


@pytest.mark.parametrize("machine", MACHINES, ids=str)
def test_random_programs(machine: Machine) -> None:
    programs.check_random_programs(machine, range(3))


@pytest.mark.parametrize("target", ["sme", "sme512"])
@pytest.mark.parametrize("kind", KINDS)
def test_evaluator(target: str, kind: str) -> None:
    shape = (40, 80, 64)
    text = programs.product_text(kind, shape)
    lowered = lower(parse(text), target, options=Options(triple="aarch64-linux-gnu"))
    name = "_".join([kind, *map(str, shape)])
    found, *operands = programs.product_arguments(kind, shape)
    exact = found.copy()
    evaluate(lowered, name, found, *operands)
    evaluate(parse(text), name, exact, *operands)
    programs.assert_near(found, exact)
    assert np.any(found)


def test_kernels_with_tiles_are_the_only_ones_in_streaming_mode() -> None:
    text = "".join(programs.product_text("float", shape) for shape in programs.SHAPES)
    lowered = lower_text(text, target="sme512", options=Options(triple="aarch64-linux-gnu"))
    functions = [part for part in re.split(r"(?m)^define ", lowered)[1:] if "@__arm" not in part.partition("{")[0]]
    modes = {"call void @llvm.aarch64.sme." in part: "aarch64_pstate_sm_body" in part for part in functions}
    assert modes == {False: False, True: True}
