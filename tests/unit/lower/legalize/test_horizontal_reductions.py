"""Short rows, several of which are folded together: all operations and types, against NumPy."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

import tlx
from tests.unit.lower.legalize.math.functions import RUNNABLE
from tlx.diagnostics import LoweringError
from tlx.ir.parser.module import parse
from tlx.lower.context import LoweringContext
from tlx.lower.legalize import legalize
from tlx.target.lookup import find_target

Array = NDArray[Any]
DTYPES: dict[str, Any] = {
    "bfloat": np.dtype(ml_dtypes.bfloat16),
    "half": np.dtype(np.float16),
    "float": np.dtype(np.float32),
    "double": np.dtype(np.float64),
    "i8": np.dtype(np.int8),
    "i32": np.dtype(np.int32),
}
EPSILON = {4: 2.0**-23, 8: 2.0**-52}
SMALLEST = 2.0**-24
"""Of half's numbers: what results are multiples of."""
FLOATS = ["add", "mul", "max", "min"]
REDUCED = {
    "add": np.add,
    "mul": np.multiply,
    "max": np.maximum,
    "min": np.minimum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}
ROWS = [2, 7, 21]
COLS = [3, 40]


def _module(element: str, operations: list[str], cols: int) -> str:
    return "".join(_function(element, operation, rows, cols) for operation in operations for rows in ROWS)


def _function(element: str, operation: str, rows: int, cols: int) -> str:
    rest = "<2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer"
    return f"""
define void @{operation}{rows}(ptr %y, ptr %x) {{
  %t = call token @llvm.tensor.load(ptr elementtype({element}) %x, <2 x i32> <i32 {rows}, i32 {cols}>, {rest})
  %r = call <{rows} x {element}> @llvm.tensor.reduce.{operation}(token %t, <2 x i32> <i32 1, i32 {cols}>,
      <2 x i32> <i32 1, i32 1>)
  store <{rows} x {element}> %r, ptr %y, align 1
  ret void
}}
"""


def _values(dtype: Any, shape: tuple[int, int]) -> Array:
    rng = np.random.default_rng(0)
    if dtype.kind == "i":
        return rng.integers(-120, 120, shape).astype(dtype)
    x = rng.standard_normal(shape).astype(dtype)
    for row, value in [(1, np.nan), (4, -np.inf), (9, np.inf), (12, -np.nan)]:
        if row < shape[0]:
            x[row, rng.integers(shape[1])] = value
    return x


@pytest.mark.parametrize(
    ("target", "element"),
    [(t, e) for t in ("avx2", "avx512") if t in RUNNABLE for e in DTYPES if t == "avx512" or e != "half"],
)
@np.errstate(all="ignore")
def test_rows_are_reduced_as_by_numpy(target: str, element: str) -> None:
    dtype = DTYPES[element]
    operations = list(REDUCED) if dtype.kind == "i" else FLOATS
    for cols in COLS:
        compiled = tlx.compile(_module(element, operations, cols), target, opt_level=1)
        for operation in operations:
            for rows in ROWS:
                x, y = _values(dtype, (rows, cols)), np.zeros(rows, dtype)
                compiled[f"{operation}{rows}"](y, x)
                _check(operation, x, y)


def _check(operation: str, x: Array, y: Array) -> None:
    wide = x if x.dtype.kind == "i" else x.astype(np.float64)
    expected = REDUCED[operation].reduce(wide, axis=1, dtype=wide.dtype)
    if x.dtype.kind == "i" or operation in ("max", "min"):
        assert np.array_equal(y.astype(wide.dtype), expected, equal_nan=x.dtype.kind != "i"), (operation, x.shape)
        return
    precision = EPSILON.get(x.dtype.itemsize, 2.0**-7) + x.shape[1] * 2.0**-23
    size = np.abs(wide).sum(1) if operation == "add" else np.abs(expected)
    close = np.abs(y.astype(np.float64) - expected) <= precision * size + SMALLEST
    same = (y.astype(np.float64) == expected) | (np.isnan(y) & np.isnan(expected))
    assert np.all(close | same), (operation, x.shape)


@pytest.mark.parametrize(
    "line",
    [
        "%r = call <4 x float> @llvm.tensor.reduce.add(token %t, <2 x i32> <i32 1, i32 4>, <2 x i32> <i32 1, i32 1>)",
        "%r = call <32 x float> @llvm.tensor.concat(token %t, token %t, i32 1)",
    ],
)
def test_other_forms_are_no_tile_operations(line: str) -> None:
    text = f"""
define internal void @k(ptr %x) "tlx-stage"="tiles" {{
  %t = call token @llvm.tensor.load(ptr elementtype(float) %x, <2 x i32> <i32 4, i32 4>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  {line}
  ret void
}}
"""
    with pytest.raises(LoweringError, match="of this form is not a tile operation"):
        legalize(parse(text), LoweringContext(find_target("avx512")))
