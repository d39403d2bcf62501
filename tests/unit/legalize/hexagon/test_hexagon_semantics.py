"""The meaning of HVX's products of bytes, compared bit by bit with QEMU's."""

from __future__ import annotations

from typing import Final

import numpy as np

from tests.support.emulation import Machine as EmulatedMachine
from tlx.evaluate import Machine
from tlx.ir.parser.module import parse
from tlx.legalize.hexagon.semantics import SEMANTICS

FEATURES: Final = ("+hvxv66", "+hvx-length128b")
MACHINE: Final = EmulatedMachine("generic", "qemu-hexagon -cpu v67", FEATURES)
NAMES: Final = ("vrmpybusv", "vrmpybv", "vrmpyubv")
ATTRIBUTES: Final = f'"target-features"="{",".join(FEATURES)}"'


def _function(name: str) -> str:
    intrinsic = f"@llvm.hexagon.V6.{name}.acc.128B"
    return f"""
declare <32 x i32> {intrinsic}(<32 x i32>, <32 x i32>, <32 x i32>)
define void @{name}(ptr %acc, ptr %lhs, ptr %rhs) {ATTRIBUTES} {{
  %c = load <32 x i32>, ptr %acc, align 4
  %a = load <32 x i32>, ptr %lhs, align 4
  %b = load <32 x i32>, ptr %rhs, align 4
  %r = call <32 x i32> {intrinsic}(<32 x i32> %c, <32 x i32> %a, <32 x i32> %b)
  store <32 x i32> %r, ptr %acc, align 4
  ret void
}}
"""


def test_products() -> None:
    text = "".join(map(_function, NAMES))
    emulated, evaluated = MACHINE.compile(text, opt_level=1), Machine(parse(text))
    random = np.random.default_rng(1)
    for name in NAMES:
        for _ in range(20):
            acc, lhs, rhs = random.integers(-(1 << 31), 1 << 31, (3, 32)).astype(np.int32)
            lhs.view(np.uint8)[:8] = rhs.view(np.uint8)[:8] = [128, 255, 127, 0, 255, 255, 255, 255]
            there, here = acc.copy(), acc.copy()
            emulated[name](there, lhs, rhs)
            evaluated.call(name, here, lhs, rhs)
            np.testing.assert_array_equal(here, there, name)
    emulated.close()


def test_all_products_are_compared() -> None:
    assert {name.split(".")[2] for name in SEMANTICS.intrinsics} == {*NAMES}
