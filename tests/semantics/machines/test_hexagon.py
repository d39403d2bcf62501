"""Machine code for Hexagon's vectors under QEMU computes what its programs mean.

QEMU has none of HVX's float instructions: without them, functions with floats are compiled without vectors. The start
code runs the threads of a team in turns.
"""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from tests.emulation import Machine
from tests.semantics.machines import programs
from tests.tools import quick
from tlx.evaluate import evaluate
from tlx.ir.parser.module import parse
from tlx.lower.pipeline import lower_text

WITHOUT_FLOATS = ("-hvx-ieee-fp", "-hvxv68", "-v68", "+hvxv66", "+hvx-length128b")
HVX = Machine("hvx", "qemu-hexagon -cpu v67", WITHOUT_FLOATS)
NAMES = {"smma": "vrmpybv", "umma": "vrmpyubv", "usmma": "vrmpybusv", "summa": "vrmpybusv"}


@pytest.mark.parametrize("kind", NAMES)
@pytest.mark.parametrize("shape", quick([(33, 42, 70), (61, 59, 67), (40, 80, 64), (1, 3, 5)], 2), ids=str)
def test_products_of_bytes(kind: str, shape: tuple[int, int, int]) -> None:
    text = programs.product_text(kind, shape)
    found, *operands = programs.product_arguments(kind, shape)
    exact = found.copy()
    code = HVX.compile(text)
    code.entry(found, *operands)
    evaluate(parse(text), "_".join([kind, *map(str, shape)]), exact, *operands)
    np.testing.assert_array_equal(found, exact)
    assert f"@llvm.hexagon.V6.{NAMES[kind]}.acc.128B(" in code.lowered
    code.close()


@pytest.mark.parametrize("kind", quick(["float", "half", "bfloat", "double"]))
def test_products_of_floats(kind: str) -> None:
    programs.check_products(HVX, kinds=(kind,)).close()


def test_layers() -> None:
    """Without vectors, LLVM compiles in seconds what takes it minutes on registers that hold no floats."""
    programs.check_layers(HVX)


def test_threads() -> None:
    code = programs.check_products(HVX, kinds=("usmma",), shapes=[(33, 42, 70)], threads=True)
    assert "GOMP_parallel" in code.lowered
    code.close()


@pytest.mark.long
def test_tensor_language() -> None:
    programs.check_attention(HVX)


EXCLUDED = ("matmul_i8_i8_i32_cc", "intrinsics")
"""LLVM takes minutes for transposes of bytes in vectors that do not fill a register; a fused multiply-add of doubles
calls the C library, and there is none for Hexagon here."""


@pytest.mark.parametrize("name", quick([name for name in programs.PROGRAMS if name not in EXCLUDED][::3]))
def test_run_time_sizes(name: str) -> None:
    programs.check_dynamic(HVX, [name])


def test_only_functions_without_floats_have_vectors() -> None:
    """With the instructions of v68, vectors hold floats, but no double; without, they hold none."""
    text = "".join(programs.product_text(kind, (16, 24, 32)) for kind in ("usmma", "float", "double"))

    def functions_with_vectors(features: tuple[str, ...]) -> set[str]:
        lowered = lower_text(text, target="hvx", options=replace(HVX.options, features=features))
        kernels = re.findall(r"@tlx\.(\S*?)\(.*\+hvx-length128b", lowered)
        return {element for kernel in kernels for element in ("i8", "f32", "f64") if f".{element}" in kernel}

    assert functions_with_vectors(WITHOUT_FLOATS) == {"i8"}
    assert functions_with_vectors(()) == {"i8", "f32"}


HALF_REGISTER = """
define void @sum(ptr %x, ptr %y) {
  %t = call token @llvm.tensor.load(ptr elementtype(i16) %x, <2 x i32> <i32 3, i32 32>, FLAT)
  %v = call <96 x i16> @llvm.tensor.tovector(token %t)
  %s = add <96 x i16> %v, %v
  %u = call token @llvm.tensor.typeinfo(<96 x i16> %s, <2 x i32> <i32 3, i32 32>, <2 x i32> <i32 0, i32 1>, ZERO)
  call void @llvm.tensor.store(ptr %y, token %u, <2 x i32> <i32 0, i32 40>)
  ret void
}
""".replace("FLAT", "<2 x i32> <i32 0, i32 1>, ZERO, <2 x i32> <i32 0, i32 40>").replace(
    "ZERO", "<2 x i32> zeroinitializer"
)


def test_accesses_do_not_pass_the_end_of_arrays() -> None:
    """LLVM accesses a whole register for a vector that fills half of one."""
    x, y = np.arange(112, dtype=np.int16), np.zeros(112, np.int16)
    code = HVX.compile(HALF_REGISTER)
    code.sum.call_guarded([x, y], "after")
    for row in (0, 40, 80):
        np.testing.assert_array_equal(y[row : row + 32], 2 * x[row : row + 32])
    code.close()
