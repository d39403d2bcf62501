"""The larger and the smaller of a register and a constant: one comparison, for each kind of number."""

from __future__ import annotations

import numpy as np
import pytest

from tlx.evaluate import Machine
from tlx.ir.builder import Builder, new_function
from tlx.ir.parser.module import parse, parse_fully
from tlx.ir.types import FLOAT, I8, VectorType
from tlx.ir.values import Value, const_float, const_vector, zero
from tlx.lower.legalize.elementwise import emit_elementwise
from tlx.lower.operations import ElementwiseOp
from tlx.target.lookup import find_target

_NUMBERS = np.array(
    [0, -0.0, 1, -1, 1.5, -1.5, 1e-45, -1e-45, 3e38, -3e38, np.inf, -np.inf, np.nan, -np.nan, 2, 0.5], "f4"
)
_TYPE = VectorType(_NUMBERS.size, FLOAT)


@pytest.mark.parametrize("swaps", [False, True])
@pytest.mark.parametrize("bound", [0.0, -0.0, 1.5, -1.0, np.inf, -np.inf])
@pytest.mark.parametrize("name", ["minimum", "maximum", "minimumnum", "maximumnum", "minnum", "maxnum"])
def test_constant(name: str, bound: float, swaps: bool) -> None:
    result, text = _result(name, const_vector([const_float(FLOAT, bound)] * _NUMBERS.size), swaps=swaps)
    expected = _expected(name, bound)
    assert np.array_equal(result, expected, equal_nan=True)
    if name not in ("minnum", "maxnum"):  # which may return either zero
        assert np.array_equal(np.signbit(result), np.signbit(expected) | (np.isnan(expected) & np.signbit(result)))
    assert text.count("fcmp") == text.count("select") == 1


def test_zero_of_any_spelling() -> None:
    result, text = _result("maximum", zero(_TYPE), swaps=False)
    assert np.array_equal(result, _expected("maximum", 0.0), equal_nan=True)
    assert text.count("fcmp") == 1


def _expected(name: str, bound: float) -> np.ndarray:
    """The result for each number; a zero is larger than a negative zero, and a NaN is the result or ignored."""
    chosen: list[float] = []
    for number in _NUMBERS.tolist():
        order = [(value, -int(np.signbit(value)), value) for value in (number, bound) if not np.isnan(value)]
        best = (min if name.startswith("min") else max)(order)[2]
        chosen.append(number if np.isnan(number) and name in ("minimum", "maximum") else best)
    return np.array(chosen, "f4")


def _result(name: str, constant: Value, *, swaps: bool) -> tuple[np.ndarray, str]:
    """The result for all numbers, and the code."""
    module = parse("")
    pointer = module.pointer_to(I8)
    made = new_function(module, "f", [(pointer, "", "out"), (pointer, "", "x")], "")
    b = Builder(module, made)
    out, source = (argument.value for argument in made.arguments)
    operands = [b.load(_TYPE, source, 4), constant]
    operation = ElementwiseOp("call", (), "", f"llvm.{name}")
    registers = operands[::-1] if swaps else operands
    value = emit_elementwise(b, find_target("avx512"), operation, FLOAT, [FLOAT, FLOAT], registers)
    b.store(value, out, 4)
    b.ret()
    result = np.zeros_like(_NUMBERS)
    Machine(parse_fully(str(module))).call("f", result, _NUMBERS.copy())
    return result, str(module)
