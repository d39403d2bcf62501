"""A product of two column-major matrices may be computed as its transpose, of two row-major ones."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import tlx
from tests.support.product_texts import product_text
from tests.support.remarks import remarks_of
from tlx.lower.knobs import NO_KNOBS, parse_knobs
from tlx.lower.options import Options
from tlx.lower.pipeline import lower_text
from tlx.lower.remarks import Remarks


@pytest.mark.parametrize("target", ["avx512", "amx,avx512"])
@pytest.mark.parametrize(("k", "transposed"), [(16, False), (512, True)])
def test_it_is_transposed_if_packing_costs_more_than_the_store(k: int, transposed: bool, target: str) -> None:
    text = product_text(512, 512, k, a_columns=True, b_columns=True)
    assert ("C stored column by column" in remarks_of(text, target)) == transposed


@pytest.mark.parametrize("words", ["matmul 512x480x300 float tt", "matmul 480x512x300 float"])
def test_it_is_not_transposed_if_a_knob_sets_its_tile(words: str) -> None:
    text = product_text(512, 480, 300, a_columns=True, b_columns=True)
    remarks = Remarks()
    knobs = parse_knobs("mc=64")
    options = Options(remarks=remarks, knobs=lambda question: knobs if question.text == words else NO_KNOBS)
    lower_text(text, target="avx512", options=options)
    assert any("register tile" in remark.message for remark in remarks)
    assert not any("C stored column by column" in remark.message for remark in remarks)


@pytest.mark.parametrize("target", ["generic", "avx2", "avx512"])
@pytest.mark.parametrize(
    ("element", "m", "n", "k"),
    [
        ("float", 256, 96, 300),
        ("float", 142, 77, 301),
        ("double", 128, 90, 200),
        ("bfloat", 128, 96, 128),
        ("i32", 142, 77, 99),
    ],
)
def test_the_product_is_right(target: str, element: str, m: int, n: int, k: int) -> None:
    rng = np.random.default_rng(m)
    types = {"float": np.float32, "double": np.float64, "bfloat": ml_dtypes.bfloat16, "i32": np.int32}
    sums = {"double": ("double", np.float64), "i32": ("i32", np.int32)}
    sum_, result = sums.get(element, ("float", np.float32))
    a, b = (rng.integers(-8, 8, extents).astype(types[element]) for extents in ((k, m), (n, k)))
    c = np.zeros((m, n), result)
    text = product_text(m, n, k, element, result=sum_, a_columns=True, b_columns=True)
    remarks = Remarks()
    tlx.compile(text, target, options=Options(remarks=remarks))(c, a, b)
    assert np.array_equal(c, a.astype(result).T @ b.astype(result).T)
    if (m, element) == (142, "float"):  # whose 77 columns fill registers badly
        assert any("C stored column by column" in remark.message for remark in remarks)
