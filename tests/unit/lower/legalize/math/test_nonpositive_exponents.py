"""e^x where no x is above 0, as in a softmax, has the same error and no case for subnormal results."""

from __future__ import annotations

from typing import Any, Final, Literal

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

import tlx
from tests.unit.lower.legalize.math.functions import RUNNABLE, computed, errors, lanes_of, program
from tlx.ir.parser.module import parse
from tlx.ir.types import FLOAT
from tlx.lower.operations import FULL_ACCURACY, Accuracy
from tlx.lower.options import Options
from tlx.lower.pipeline import lower
from tlx.target.lookup import find_target

COLUMNS: Final = 512
MARK: Final = "!tlx.nonpositive"
BFLOAT: Final = np.dtype(ml_dtypes.bfloat16)


def softmax_numerators(
    shape: str = "2, 4, 512",
    *,
    element: str = "bfloat",
    window: str = "1, 1, 512",
    maxima: str = "2, 4",
    dims: str = "0, 1",
    reduction: str = "max",
    reduced: str = "%v",
    difference: str = "%v, %b",
    token: str = "%r.t",
) -> str:
    """`y = exp(x - max(x))` of the rows of a tensor of rank 3, or something like it."""

    def vector(numbers: str) -> str:
        extents = numbers.split(", ")
        return f"<{len(extents)} x i32> <{', '.join(f'i32 {extent}' for extent in extents)}>"

    def count(numbers: str) -> int:
        return int(np.prod([int(extent) for extent in numbers.split(", ")]))

    n, m = count(shape), count(maxima)
    order, zeros = vector("0, 1, 2"), "<3 x i32> zeroinitializer"
    orders = vector(", ".join(map(str, range(len(maxima.split(", "))))))
    none = f"<{len(maxima.split(', '))} x i32> zeroinitializer"
    return f"""define void @f(ptr noalias %y, ptr noalias %x, ptr noalias %z) {{
      %x.t = call token @llvm.tensor.load(ptr elementtype({element}) %x, {vector(shape)}, {order}, {zeros}, {zeros})
      %v = call <{n} x {element}> @llvm.tensor.tovector(token %x.t)
      %z.t = call token @llvm.tensor.load(ptr elementtype({element}) %z, {vector(shape)}, {order}, {zeros}, {zeros})
      %w = call <{n} x {element}> @llvm.tensor.tovector(token %z.t)
      %r.t = call token @llvm.tensor.typeinfo(<{n} x {element}> {reduced}, {vector(shape)}, {order}, {zeros})
      %m = call <{m} x {element}> @llvm.tensor.reduce.{reduction}(token {token}, {vector(window)}, {vector("1, 1, 1")})
      %m.t = call token @llvm.tensor.typeinfo(<{m} x {element}> %m, {vector(maxima)}, {orders}, {none})
      %b = call <{n} x {element}> @llvm.tensor.broadcast(token %m.t, {vector(shape)}, {vector(dims)})
      %d = fsub <{n} x {element}> {difference}
      %d.t = call token @llvm.tensor.typeinfo(<{n} x {element}> %d, {vector(shape)}, {order}, {zeros})
      %e = call <{n} x {element}> @llvm.tensor.exp(token %d.t)
      store <{n} x {element}> %e, ptr %y
      ret void
    }}"""


def is_marked(text: str) -> bool:
    return MARK in str(lower(parse(text), "avx512", options=Options(stop_after="to-tiles")))


@pytest.mark.parametrize(
    "form",
    [
        {},
        {"element": "float"},
        {"token": "%x.t"},
        {"maxima": "2, 4, 1", "dims": "0, 1, 2"},
        {"maxima": "8", "shape": "8, 2, 256", "window": "1, 2, 256", "dims": "0"},
        {"maxima": "1", "shape": "1, 2, 256", "window": "1, 2, 256", "dims": "0"},
    ],
    ids=str,
)
def test_differences_from_the_maxima_of_rows_are_marked(form: dict[str, Any]) -> None:
    assert is_marked(softmax_numerators(**form))


@pytest.mark.parametrize(
    "form",
    [
        {"reduction": "min"},
        {"reduction": "add"},
        {"reduced": "%w"},
        {"token": "%z.t"},
        {"difference": "%w, %b"},
        {"difference": "%b, %v"},
        {"shape": "2, 4, 4", "window": "1, 4, 1", "maxima": "2, 4"},
        {"shape": "4, 4, 4", "window": "1, 4, 1", "maxima": "4, 4", "dims": "0, 2"},
        {"shape": "4, 4, 4", "window": "1, 1, 4", "maxima": "4, 4", "dims": "0, 2"},
        {"shape": "4, 4, 4", "window": "1, 1, 4", "maxima": "4, 4", "dims": "1, 2"},
    ],
    ids=str,
)
def test_other_differences_are_not_marked(form: dict[str, Any]) -> None:
    assert not is_marked(softmax_numerators(**form))


def every_nonpositive_bfloat() -> NDArray[Any]:
    """In rows that begin with 0; two more rows have a NaN."""
    numbers = np.arange(0x8000, 0xFF81, dtype=np.uint16)
    rows = -(-numbers.size // (COLUMNS - 1))
    padded = np.resize(numbers, rows * (COLUMNS - 1)).reshape(rows, COLUMNS - 1)
    x = np.concatenate([np.zeros((rows, 1), np.uint16), padded], axis=1)
    nan = np.full((2, COLUMNS), 0xC000, np.uint16)
    nan[0, 3], nan[1, 77] = 0x7FFF, 0xFFC0
    return np.concatenate([x, nan]).view(BFLOAT)


@pytest.mark.parametrize("target", [name for name in ("amx", "avx512", "avx2") if name in RUNNABLE])
@pytest.mark.parametrize("mode", ["exact", "float"])
def test_every_bfloat(mode: Literal["exact", "float"], target: str) -> None:
    x = every_nonpositive_bfloat()
    shape = f"{len(x)}, 1, {COLUMNS}"
    text = softmax_numerators(shape, maxima=f"{len(x)}, 1")
    assert is_marked(text)
    y = np.empty_like(x)
    tlx.compile(text, target, bf16_intermediates=mode)["f"](y, x, np.zeros_like(x))
    assert np.isnan(y[-2:]).all()
    exact = np.exp(x[:-2].astype(np.float64))
    ulp = 2.0 ** (np.maximum(np.floor(np.log2(np.maximum(exact, 1e-300))), -126) - 7)
    assert np.max(np.abs(y[:-2].astype(np.float64) - exact) / ulp) < 0.5 + 2.0**-8


@pytest.mark.parametrize("target", RUNNABLE)
def test_floats(target: str) -> None:
    accuracy, random = Accuracy(nonpositive=True), np.random.default_rng(3)
    x = np.concatenate([-random.uniform(0, 104, 100_000), -(10.0 ** random.uniform(-40, 3, 10_000)), [0.0, -0.0]])
    x = x.astype(np.float32)
    assert np.max(errors("exp", x, computed("exp", x, target, accuracy))) < 1.8
    special = np.array([np.nan, -np.inf, -1e9, -3e38], np.float32)
    np.testing.assert_array_equal(computed("exp", special, target, accuracy), [np.nan, 0, 0, 0])


def test_floats_are_not_limited_from_above() -> None:
    machine = find_target("avx512")
    texts = (
        program("exp", FLOAT, machine, lanes_of(machine, FLOAT), a) for a in (Accuracy(nonpositive=True), FULL_ACCURACY)
    )
    fewer, all_of_them = (text.count(" = ") for text in texts)
    assert fewer < all_of_them
