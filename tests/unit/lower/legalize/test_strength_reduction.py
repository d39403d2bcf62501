"""Division of rows by a number each, made of products: the same bits as by the instruction."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

import tlx
from tests.unit.lower.legalize.math.functions import RUNNABLE
from tlx.ir.builder import Builder, new_function
from tlx.ir.parser.module import parse
from tlx.ir.types import BFLOAT, FLOAT, I8, I64, Type, VectorType
from tlx.lower.legalize.registers import register_element
from tlx.lower.legalize.strength_reduction import divide_registers, is_quotient_by_product_better
from tlx.target.lookup import find_target

Array = NDArray[Any]
BF16 = np.dtype(ml_dtypes.bfloat16)
DTYPES: dict[Type, Any] = {FLOAT: np.dtype(np.float32), BFLOAT: BF16}
TARGET = find_target("avx512")
SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-40, -1e-40, 1e-33, 3e38, 2.0**-100, 2.0**100, 2.0**-101, 1.0, -3.0]

pytestmark = pytest.mark.skipif("avx512" not in RUNNABLE, reason="no AVX-512")


def _program(element: Type) -> str:
    """`@f(out, in, divisors, n)`: two registers of numerators at a time, by one of divisors."""
    module = parse("")
    pointer = module.pointer_to(I8)
    lanes = TARGET.vector_bytes * 8 // (16 if element == BFLOAT else 32)
    stored = register_element(element)
    register = VectorType(lanes, stored)
    parameters = [(pointer, "", "out"), (pointer, "", "in"), (pointer, "", "by"), (I64, "", "n")]
    features = f'nounwind "target-features"="{",".join(TARGET.features)}"'
    b = Builder(module, new_function(module, "f", parameters, features, ""))
    out, source, by, count = (argument.value for argument in b.function.arguments)
    with b.loop(0, count, 2 * lanes) as loop:
        places = [b.add(loop.index, i * lanes) for i in range(2)]
        numerators = [b.load(register, b.gep(stored, source, place), 2) for place in places]
        divisor = b.load(register, by, 2)
        for place, quotient in zip(places, divide_registers(b, TARGET, element, numerators, divisor), strict=True):
            b.store(quotient, b.gep(stored, out, place), 2)
    b.ret()
    return str(module)


@pytest.fixture(scope="module", params=[FLOAT, BFLOAT], ids=str)
def quotients(request: pytest.FixtureRequest) -> Any:
    element: Type = request.param
    compiled = tlx.compile(_program(element), "generic", opt_level=1)["f"]

    def run(x: Array, divisor: Any) -> Array:
        result = np.empty_like(x)
        words = np.uint16 if element == BFLOAT else np.float32
        compiled(result.view(words), x.view(words), np.full(64, divisor, x.dtype).view(words), x.size)
        return result

    return DTYPES[element], run


@np.errstate(all="ignore")
def _check(dtype: Any, x: Array, divisor: Any, result: Array) -> None:
    expected = (x.astype(np.float32) / np.float32(divisor)).astype(dtype)
    nan = np.isnan(expected)
    words = np.uint16 if dtype == BF16 else np.uint32
    assert np.array_equal(np.isnan(result), nan)
    assert np.array_equal(result[~nan].view(words), expected[~nan].view(words)), divisor


def _numbers(dtype: Any, spread: float) -> Array:
    random = np.random.default_rng(int(spread))
    return (random.normal(size=1 << 14) * np.exp2(random.uniform(-spread, spread, 1 << 14))).astype(dtype)


def test_quotients_are_rounded_as_by_the_instruction(quotients: Any) -> None:
    dtype, run = quotients
    x = _numbers(dtype, 20)
    for divisor in np.abs(_numbers(dtype, 8))[:200]:
        _check(dtype, x, divisor, run(x, divisor))


def test_special_values_and_those_near_the_ends_of_the_range(quotients: Any) -> None:
    dtype, run = quotients
    x = _numbers(dtype, 120)
    x[: len(SPECIAL) * 512] = np.repeat(np.array(SPECIAL, dtype), 512)
    for divisor in np.array([*SPECIAL, 3.0, 2.0**24, 2.0**-24, 2.0**-25, 7e8], dtype):
        _check(dtype, x, divisor, run(x, divisor))


@pytest.mark.parametrize("quotients", [BFLOAT], ids=str, indirect=True)
def test_every_bfloat_by_some(quotients: Any) -> None:
    dtype, run = quotients
    x = np.arange(1 << 16, dtype=np.uint16).view(BF16)
    for divisor in np.array([1.0, 3.0, 1.9921875, 129.0, 0.0078125, 1.0078125, 1000.0], BF16):
        _check(dtype, x, divisor, run(x, divisor))


def test_only_where_division_is_slow() -> None:
    module = parse("")
    b = Builder(module, new_function(module, "f", [(module.pointer_to(I8), "", "p")], ""))
    source = b.function.arguments[0].value
    whole, half = (b.load(VectorType(count, FLOAT), source, 4) for count in (16, 8))
    assert is_quotient_by_product_better(TARGET, FLOAT, [whole])
    assert not is_quotient_by_product_better(TARGET, FLOAT, [half])
    assert not is_quotient_by_product_better(find_target("avx2"), FLOAT, [half])
