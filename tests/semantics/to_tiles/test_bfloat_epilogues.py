"""Epilogues of bfloat products on AMX, whose operations are rounded to bfloat one by one, against the evaluator."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

import ml_dtypes
import numpy as np
import pytest

from tests.support.tools import require_processor
from tlx.graph import Graph, Value
from tlx.lower.pipeline import lower

_ROWS: Final = 64
_BFLOAT: Final = np.dtype(ml_dtypes.bfloat16)


def wide(g: Graph, x: Value) -> Value:
    """Arithmetic in float between operations on bfloats."""
    return g.convert(g.convert(x * 0.75, "float32") * 1.0009765625 + 3.0, "bfloat16") - x


EPILOGUES: Final[dict[str, Callable[[Graph, Value, Value], Value]]] = {
    "scaled": lambda _, x, _y: x * 0.3,
    "bias": lambda _, x, y: (x + y[:1]) * 1.7,
    "residual": lambda _, x, y: (x * x - y) * y,
    "widened": lambda g, x, _y: wide(g, x),
    "widened at once": lambda g, x, y: g.convert(g.convert(x, "float32") * 0.3 + 1.5, "bfloat16") + y,
    "maximum": lambda g, x, y: g.maximum(x, y) * 0.1,
}


@pytest.mark.parametrize("columns", [32, 64, 80, 100])
@pytest.mark.parametrize("name", EPILOGUES)
def test_each_operation_is_rounded(name: str, columns: int) -> None:
    require_processor("amx")
    graph = Graph("f")
    shapes = {"a": (_ROWS, 32), "b": (32, columns), "y": (_ROWS, columns)}
    a, b, y = (graph.parameter(name, shape, _BFLOAT) for name, shape in shapes.items())
    graph.output(EPILOGUES[name](graph, a @ b, y))
    rng = np.random.default_rng(columns)
    # One product of each sum is not zero, so that sums are exact.
    lhs, rhs = np.zeros((_ROWS, 32), _BFLOAT), np.zeros((32, columns), _BFLOAT)
    lhs[:, 3] = rng.normal(size=_ROWS) * 2.0 ** rng.integers(-40, 40, _ROWS)
    lhs[:4, 3] = [np.inf, -np.inf, np.nan, 3e38]
    rhs[3] = 2.0 ** rng.integers(-40, 40, columns)
    other = (rng.normal(size=(_ROWS, columns)) * 2.0 ** rng.integers(-140, 100, (_ROWS, columns))).astype(_BFLOAT)
    with np.errstate(all="ignore"):
        expected: Any = graph.evaluate(lhs, rhs, other)
        actual = graph.compile("amx")(lhs, rhs, other)
    np.testing.assert_array_equal(actual.astype("f4"), expected.astype("f4"))


@pytest.mark.parametrize("name", ["scaled", "widened"])
def test_whole_registers_are_rounded(name: str) -> None:
    """Sums are rounded two registers at a time, and what follows is computed on their even and odd elements."""
    graph = Graph("f")
    a, b, y = (graph.parameter(n, (_ROWS, 64), _BFLOAT) for n in "aby")
    graph.output(EPILOGUES[name](graph, a @ b.T, y))
    module = graph.module()
    lower(module, "amx")
    text = str(module)
    assert "cvtne2ps2bf16" in text
    assert not re.search(r"add <16 x i32> .*32767", text)  # how single registers are rounded
