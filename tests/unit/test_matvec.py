"""Products with a vector become sums along K, and only those that gain."""

from __future__ import annotations

import pytest

from tlx.ir.types import BFLOAT, DOUBLE, FLOAT, I8, Type
from tlx.lower.to_tiles.matvec import as_row_sums
from tlx.lower.to_tiles.problem import Gemm
from tlx.lower.to_tiles.view import View
from tlx.target import targets

AVX512 = targets()["avx512"]


def _gemm(
    m: int, n: int, k: int, element: Type = FLOAT, result: Type = FLOAT, *, columns: str = "", acc: bool = False
) -> Gemm:
    a = View(element, m, k, 1, m) if "a" in columns else View(element, m, k, k, 1)
    b = View(element, k, n, 1, k) if "b" in columns else View(element, k, n, n, 1)
    c = View(result, m, n, n, 1)
    sign = "s" if element == I8 else "f"
    return Gemm(a, b, c, c if acc else None, sign, sign)


@pytest.mark.parametrize("element", [FLOAT, BFLOAT])
def test_a_column_of_results_reads_the_rows_of_a(element: Type) -> None:
    sums = as_row_sums(_gemm(100, 1, 300, element), AVX512)
    assert sums is not None
    assert (sums.value.rows, sums.value.cols, sums.operation, sums.axis) == (100, 300, "add", 1)
    assert [leaf.pointer for leaf in sums.value.leaves()] == [0, 1]
    assert sums.value.element == sums.destination.element == FLOAT


def test_a_row_of_results_reads_the_columns_of_b() -> None:
    sums = as_row_sums(_gemm(1, 100, 300, DOUBLE, DOUBLE, columns="b"), AVX512)
    assert sums is not None
    assert [(leaf.pointer, leaf.view.rows, leaf.view.row_stride) for leaf in sums.value.leaves()] == [
        (1, 100, 300),
        (0, 1, 0),
    ]


@pytest.mark.parametrize(
    "gemm",
    [
        _gemm(100, 2, 300),
        _gemm(1, 100, 300),
        _gemm(100, 1, 300, columns="a"),
        _gemm(100, 1, 300, acc=True),
        _gemm(100, 1, 4),
        _gemm(100, 1, 300, I8, I8),
        _gemm(100, 1, 300, BFLOAT, BFLOAT),
    ],
)
def test_other_products_stay(gemm: Gemm) -> None:
    assert as_row_sums(gemm, AVX512) is None
