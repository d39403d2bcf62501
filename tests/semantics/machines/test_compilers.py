"""Machine code of the LLVM versions that compile a target's code computes what its programs mean.

The input of clang 14 has typed pointers. Code is optimised: LLVM 14 and 15 crash on that for Hexagon otherwise.
"""

from __future__ import annotations

from typing import Final
from warnings import catch_warnings

import pytest

from tests.semantics.machines import programs, test_arm, test_hexagon, test_mma, test_power, test_riscv, test_sme
from tests.support.emulation import Machine
from tests.support.tools import quick
from tlx.diagnostics import LoweringError, TlxWarning, recorded_warnings
from tlx.lower.options import Options
from tlx.lower.pipeline import lower_text
from tlx.lower.remarks import Remarks
from tlx.target.lookup import resolve_target

COMPILERS: Final = (14, 15, 16, 19)
MACHINES: Final = (
    *(test_arm.NEON, test_arm.SVE, test_arm.SVE256, test_arm.SVE512, test_sme.SME, test_sme.SME512),
    *(test_mma.MMA, test_power.POWER8, test_power.POWER9, test_power.BIG_ENDIAN),
    *(test_riscv.RVV, test_riscv.RVV512, test_riscv.LONGER, test_hexagon.HVX, Machine("generic", "qemu-aarch64")),
)


def _versions(number: int, machine: Machine) -> list[int]:
    """The first version that compiles the machine's code, one of those between in turn, and the last version."""
    first, _ = resolve_target(machine.target, features=machine.features, triple=machine.options.triple).compiler
    fit = [version for version in COMPILERS if version >= first]
    between = fit[1:-1]
    return sorted({fit[0], *between[number % 2 :][:1], fit[-1]})


PAIRS: Final = [
    (machine, f"clang-{version}") for n, machine in enumerate(MACHINES) for version in _versions(n, machine)
]
QUICK: Final = {(test_arm.NEON, "clang-14"), (test_mma.MMA, "clang-16"), (test_riscv.LONGER, "clang-16")}


ORDERED: Final = sorted(PAIRS, key=lambda pair: pair not in QUICK)


@pytest.mark.parametrize("pair", quick(ORDERED, len(QUICK)), ids=lambda pair: f"{pair[0]} {pair[1]}")
def test_products(pair: tuple[Machine, str]) -> None:
    machine, compiler = pair
    if machine == test_hexagon.HVX:  # double takes functions of compiler-rt, and LLVM 19 crashes on the second shape
        kinds = [kind for kind in programs.KINDS if kind != "double"]
        programs.check_products(machine, kinds=kinds, shapes=programs.FEW_SHAPES[:1], compiler=compiler).close()
    else:
        programs.check_products(machine, shapes=programs.FEW_SHAPES, compiler=compiler).close()


TYPED: Final = programs.with_typed_pointers(programs.fused_product_text("smma", (16, 24, 32)))


@pytest.mark.parametrize(
    ("target", "feature", "version"),
    [("sme512", "", 19), ("rvv", "+zvfhmin", 19), ("rvv", "+experimental-zvqdotq", 21)],
)
def test_typed_pointers_that_no_compiler_of_the_code_reads(target: str, feature: str, version: int) -> None:
    name = feature.removeprefix("+") or target
    options = Options(features=(feature,) if feature else ())
    with pytest.raises(LoweringError, match=f"error: code with {name} needs LLVM {version} or later, but only LLVM 16"):
        lower_text(TYPED, target=target, options=options)
    lower_text(TYPED, target=target, options=options, is_compiled=True)


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("avx2", None),
        ("avx2+avxvnniint8", "code with avxvnniint8 needs LLVM 16 or later"),
        ("avx512,amx+amx-fp16", "code with amx-fp16 needs LLVM 16 or later"),
        ("rvv", "code with rvv needs LLVM 16 or later"),
    ],
)
def test_the_first_version_is_named(target: str, message: str | None) -> None:
    """By a remark, and for an input with typed pointers, which an older version wrote, by a warning."""
    remarks = Remarks()
    with recorded_warnings() as warnings, catch_warnings(action="ignore", category=TlxWarning):
        lower_text(TYPED, target=target, options=Options(remarks=remarks))
    assert [str(message) in str(warning) for warning in warnings] == [True] * (message is not None)
    assert [r.message for r in remarks if "needs LLVM" in r.message] == [message] * (message is not None)
