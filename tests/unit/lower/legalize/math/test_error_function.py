"""erfc is close to the exact result, for every target and both formats, and takes few instructions."""

from __future__ import annotations

import re
from typing import Final

import numpy as np
import pytest

import tlx
from tests.unit.lower.legalize.math.functions import (
    DTYPES,
    ELEMENTS,
    RANGES,
    RUNNABLE,
    TYPE_NAMES,
    computed,
    denormals,
    errors,
    every_exponent,
    lanes_of,
    program,
    uniform,
    worst,
)
from tlx.ir.parser.module import parse
from tlx.ir.types import DOUBLE, FLOAT, FloatType
from tlx.llvm.codegen import emit_code
from tlx.lower.operations import Accuracy
from tlx.lower.pipeline import lower
from tlx.target.lookup import find_target

BOUND: Final = 3.9
LAST_NORMAL: Final = {FLOAT: float.fromhex("0x1.2639bep+3"), DOUBLE: float.fromhex("0x1.a8b12fc6e4892p+4")}
INF: Final = float("inf")
NAN: Final = float("nan")
_NO_SUBNORMALS: Final = Accuracy(no_subnormals=True)
_SHORT: Final = Accuracy(short=True, no_subnormals=True)

each_target = pytest.mark.parametrize("target", RUNNABLE)
each_element = pytest.mark.parametrize("element", ELEMENTS, ids=TYPE_NAMES)


@each_target
@each_element
@pytest.mark.parametrize("ends", [None, (-1.5, 1.5)], ids=["everywhere", "near zero"])
def test_error(ends: tuple[float, float] | None, element: FloatType, target: str) -> None:
    x = uniform(element, *(ends or RANGES[element, "erfc"]), 300_000 if element == FLOAT else 2500)
    assert worst("erfc", x, target) < BOUND


@each_target
@each_element
def test_arguments_of_every_size(element: FloatType, target: str) -> None:
    x = every_exponent(element, 1 << (13 if element == FLOAT else 22))
    x = np.concatenate([x[np.abs(x) < RANGES[element, "erfc"][1]], denormals(element, 200)])
    assert x.size > 300
    assert worst("erfc", x, target) < BOUND


@each_target
@each_element
def test_subnormal_results(element: FloatType, target: str) -> None:
    x = uniform(element, LAST_NORMAL[element], RANGES[element, "erfc"][1], 20_000 if element == FLOAT else 1000)
    y = computed("erfc", x, target)
    assert np.all((y > 0) & (y < np.finfo(y.dtype).smallest_normal * 1.01))
    assert worst("erfc", x, target) < 2.5


@each_target
@each_element
@pytest.mark.parametrize("accuracy", [Accuracy(), _NO_SUBNORMALS, _SHORT], ids=["full", "no subnormals", "short"])
def test_special_values(accuracy: Accuracy, element: FloatType, target: str) -> None:
    least = float(np.finfo(DTYPES[element]).smallest_subnormal)
    pairs = [(0.0, 1.0), (-0.0, 1.0), (INF, 0.0), (-INF, 2.0), (NAN, NAN), (1e30, 0.0), (-1e30, 2.0), (28.0, 0.0)]
    x, expected = (np.array(column, DTYPES[element]) for column in zip(*pairs, (least, 1.0), (-7.0, 2.0), strict=True))
    y = computed("erfc", x, target, accuracy)
    np.testing.assert_array_equal(y, expected)
    assert not np.signbit(y[~np.isnan(y)]).any()


@each_target
@each_element
def test_zeros_instead_of_subnormal_numbers(element: FloatType, target: str) -> None:
    last = DTYPES[element](LAST_NORMAL[element])
    count = 100_000 if element == FLOAT else 1500
    x = np.concatenate([uniform(element, -3, last, count), [last]]).astype(DTYPES[element])
    assert np.max(errors("erfc", x, computed("erfc", x, target, _NO_SUBNORMALS))) < BOUND
    far = np.concatenate([[np.nextafter(last, DTYPES[element](INF))], uniform(element, last, 60, 1000)[1:]])
    assert not computed("erfc", far.astype(DTYPES[element]), target, _NO_SUBNORMALS).any()


@each_target
@pytest.mark.parametrize("no_subnormals", [False, True])
def test_results_of_16_bits(no_subnormals: bool, target: str) -> None:
    accuracy = Accuracy(short=True, no_subnormals=no_subnormals)
    x = np.concatenate([uniform(FLOAT, -5, LAST_NORMAL[FLOAT], 100_000), every_exponent(FLOAT, 1 << 16)])
    x = x[x <= LAST_NORMAL[FLOAT]]
    ulps = errors("erfc", x, computed("erfc", x, target, accuracy))
    assert np.max(ulps) < 2.0**10  # an ulp is at least 2^-24 of the number
    far = uniform(FLOAT, LAST_NORMAL[FLOAT] + 0.01, 40, 10_000)
    if no_subnormals:
        assert np.max(computed("erfc", far, target, accuracy)) < np.finfo(np.float32).smallest_normal
    else:
        assert np.max(errors("erfc", far, computed("erfc", far, target, accuracy))) < BOUND


@pytest.mark.parametrize(
    ("target", "accuracy", "most"),
    [("avx512", _SHORT, 22), ("avx512", _NO_SUBNORMALS, 38), ("avx2", _NO_SUBNORMALS, 42)],
)
def test_few_instructions(target: str, accuracy: Accuracy, most: int) -> None:
    """Of a vector of floats, besides those that load constants."""
    machine = find_target(target)
    text = program("erfc", FLOAT, machine, lanes_of(machine, FLOAT), accuracy)
    assembly = emit_code(text, "asm", 1, triple="x86_64-unknown-linux-gnu").decode()
    instructions = re.findall(r"(?m)^\s+(v\w+)", assembly)
    computing = [i for i in instructions if not i.startswith(("vmov", "vbroadcast", "vpbroadcast", "vzero"))]
    assert 15 < len(computing) <= most, computing


_PRODUCT: Final = """
define void @f(ptr noalias %out, ptr noalias %in) {
  %x = call token @llvm.tensor.load(ptr elementtype(float) %in, <1 x i32> <i32 512>, <1 x i32> zeroinitializer,
      <1 x i32> zeroinitializer, <1 x i32> zeroinitializer)
  %e = call <512 x float> @llvm.tensor.erfc(token %x)METADATA
  %v = call <512 x float> @llvm.tensor.tovector(token %x)
  %p = fmul <512 x float> %e, %v
  store <512 x float> %p, ptr %out
  ret void
}
"""


def test_products_by_subnormal_results_are_scaled() -> None:
    """A branch leads to them, unless results below the normal numbers may be zero."""
    text = _PRODUCT.replace("METADATA", "")
    lowered, flushing = (
        str(lower(parse(_PRODUCT.replace("METADATA", metadata)), "avx2")) for metadata in ("", _NO_SUBNORMALS.metadata)
    )
    assert "rare" in lowered
    assert "rare" not in flushing
    x = uniform(FLOAT, 9, 10.04, 512)
    for target in RUNNABLE:
        result = np.zeros_like(x)
        tlx.compile(text, target)["f"](result, x)
        np.testing.assert_array_equal(result, computed("erfc", x, target) * x)
