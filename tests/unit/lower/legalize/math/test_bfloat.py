"""Functions of every bfloat, by every target's code, compared with the exact result."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import tlx
from tests.unit.lower.legalize.math.functions import RUNNABLE, errors_of_floats
from tlx.ir.builder import Builder, new_function
from tlx.ir.parser.module import parse
from tlx.ir.types import BFLOAT, I8, I16, I64, VectorType
from tlx.lower.legalize.elementwise import emit_math
from tlx.lower.legalize.math import VECTOR_FUNCTIONS
from tlx.target.lookup import find_target

PATTERNS = np.arange(1 << 16, dtype=np.uint16)
HALF_ULP = 1 << 15
"""Of a bfloat, in ulp of a float."""


@pytest.mark.parametrize("target", RUNNABLE)
@pytest.mark.parametrize("name", VECTOR_FUNCTIONS)
@np.errstate(all="ignore")
def test_every_number_is_hardly_more_than_half_an_ulp_off(name: str, target: str) -> None:
    machine = find_target(target)
    lanes = machine.vector_bytes // 2
    module = parse("")
    pointer = module.pointer_to(I8)
    features = f' "target-features"="{",".join(machine.features)}"' if machine.features else ""
    parameters = [(pointer, "", "out"), (pointer, "", "in"), (I64, "", "n")]
    b = Builder(module, new_function(module, "f", parameters, f"nounwind{features}", ""))
    out, source, count = (argument.value for argument in b.function.arguments)
    with b.loop(0, count, lanes) as loop:
        x = b.load(VectorType(lanes, I16), b.gep(I16, source, loop.index), 2)
        b.store(emit_math(b, machine, name, BFLOAT, x), b.gep(I16, out, loop.index), 2)
    b.ret()
    result = np.zeros(PATTERNS.size, np.uint16)
    tlx.compile(str(module), "generic", opt_level=1)["f"](result, PATTERNS, PATTERNS.size)

    x, y = (bits.view(ml_dtypes.bfloat16).astype(np.float32) for bits in (PATTERNS, result))
    error = errors_of_floats(name, x, y)
    tiny = np.abs(y) < np.finfo(np.float32).smallest_normal * 2  # an ulp of denormals is that of the smallest normals
    assert np.max(error[~tiny & np.isfinite(y)]) < HALF_ULP * 1.06
    assert np.max(np.abs(error[tiny]), initial=0.0) <= HALF_ULP * 1.06 * 2
    assert np.array_equal(np.isnan(y), np.isnan(x) | np.isnan(_exact_kind(name, x)))


def _exact_kind(
    name: str, x: np.ndarray[tuple[int], np.dtype[np.float32]]
) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
    """NaN where the function is."""
    if name.startswith("log"):
        return np.where(x < 0, np.float32(np.nan), x)
    return np.where(np.isinf(x), np.float32(np.nan), x) if name in ("sin", "cos") else x
