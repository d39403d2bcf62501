"""Copies of every second element: as many as a register has, some more and some less."""

from __future__ import annotations

import numpy as np
import pytest

from tlx.evaluate import Machine
from tlx.intrinsics.numpy_types import Array
from tlx.ir.parser.module import parse
from tlx.lower.pipeline import lower

ROWS, STEP, BEHIND = 3, 2, 99


def _text(name: str, count: int) -> str:
    """Rows of `count` pairs, of which all first ones are stored before the second ones."""
    dims = f"<3 x i32> <i32 {ROWS}, i32 {count}, i32 {STEP}>, <3 x i32> <i32 0, i32 1, i32 2>"
    zeros = "<3 x i32> zeroinitializer"
    result = f"<2 x i32> <i32 {ROWS * STEP}, i32 {count}>"
    flat = f"<{ROWS * STEP * count} x {name}>"
    return f"""\
define void @f(ptr noalias %x, ptr noalias %y) {{
  %t = call token @llvm.tensor.load(ptr elementtype({name}) %x, {dims}, {zeros}, {zeros})
  %v = call {flat} @llvm.tensor.reshape.permute(token %t, <3 x i32> <i32 0, i32 2, i32 1>, {result})
  store {flat} %v, ptr %y, align 1
  ret void
}}
"""


def _arrays(dtype: type[np.generic], count: int) -> tuple[Array, Array, Array]:
    """The operand, where the result goes and one element behind it, and that in the end."""
    x = (np.arange(ROWS * count * STEP) % 101).astype(dtype).reshape(ROWS, count, STEP)
    y = np.full(x.size + 1, BEHIND, dtype)
    return x, y, np.append(x.transpose(0, 2, 1).ravel(), y[-1])


@pytest.mark.parametrize("target", ["generic", "avx512"])
@pytest.mark.parametrize(("name", "dtype"), [("i8", np.int8), ("float", np.float32), ("i64", np.int64)])
def test_stride_2_copies(name: str, dtype: type[np.generic], target: str) -> None:
    for count in (3, 4, 8, 9, 31, 65, 130):
        module = lower(parse(_text(name, count)), target)
        x, y, expected = _arrays(dtype, count)
        Machine(module).call("f", x, y)
        np.testing.assert_array_equal(y, expected)
