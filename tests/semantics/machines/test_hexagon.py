"""Machine code for Hexagon's vectors under QEMU computes what its programs mean.

QEMU has none of HVX's float instructions: without them LLVM computes floats one by one.
"""

from __future__ import annotations

import numpy as np
import pytest

from tests.emulation import Machine
from tests.semantics.machines import programs
from tests.tools import quick
from tlx.evaluate import evaluate
from tlx.ir.parser.module import parse

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


def test_product_of_floats() -> None:
    text = programs.product_text("float", (5, 32, 9))
    found, *operands = programs.product_arguments("float", (5, 32, 9))
    exact = found.copy()
    code = HVX.compile(text)
    code.entry(found, *operands)
    evaluate(parse(text), "float_5_32_9", exact, *operands)
    programs.assert_near(found, exact)
    code.close()
