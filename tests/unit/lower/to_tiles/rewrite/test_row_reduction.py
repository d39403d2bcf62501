"""Products with a vector become reductions along K, if that is faster."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tlx.ir.types import BFLOAT, DOUBLE, FLOAT, I8, Type
from tlx.lower.operations import ElementwiseOp
from tlx.lower.to_tiles.expression import Expression, InstructionNode, MatrixLeaf, MatrixView, ProductLeaf
from tlx.lower.to_tiles.problem import Gemm
from tlx.lower.to_tiles.rewrite.products import as_row_reduction
from tlx.target.installed import targets

AVX512 = targets()["avx512"]


def _gemm(
    m: int, n: int, k: int, element: Type = FLOAT, result: Type = FLOAT, *, columns: str = "", acc: bool = False
) -> Gemm:
    a = MatrixView(element, m, k, 1, m) if "a" in columns else MatrixView(element, m, k, k, 1)
    b = MatrixView(element, k, n, 1, k) if "b" in columns else MatrixView(element, k, n, n, 1)
    c = MatrixView(result, m, n, n, 1)
    sign = "s" if element == I8 else "f"
    return Gemm(a, b, c, c if acc else None, sign, sign)


@pytest.mark.parametrize("element", [FLOAT, BFLOAT])
def test_a_column_of_results_reads_the_rows_of_a(element: Type) -> None:
    sums = as_row_reduction(_gemm(100, 1, 300, element), AVX512)
    assert sums is not None
    assert (sums.value.rows, sums.value.cols, sums.operation, sums.axis) == (100, 300, "add", 1)
    assert [leaf.pointer for leaf in sums.value.leaves()] == [0, 1]
    assert sums.value.element == sums.destination.element == FLOAT


def test_a_row_of_results_reads_the_columns_of_b() -> None:
    sums = as_row_reduction(_gemm(1, 100, 300, DOUBLE, DOUBLE, columns="b"), AVX512)
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
        _gemm(100, 1, 4),
    ],
)
def test_other_products_stay(gemm: Gemm) -> None:
    assert as_row_reduction(gemm, AVX512) is None


@pytest.mark.parametrize(
    ("element", "result", "rounding"), [(BFLOAT, BFLOAT, "fptrunc"), (I8, I8, "trunc")], ids=["bfloat", "bytes"]
)
def test_sums_are_rounded_to_the_result(element: Type, result: Type, rounding: str) -> None:
    sums = as_row_reduction(_gemm(100, 1, 300, element, result), AVX512)
    assert sums is not None
    assert sums.epilogue is not None
    assert (sums.epilogue.rows, sums.epilogue.cols, sums.epilogue.summary) == (1, 100, rounding)
    assert sums.destination.element == sums.epilogue.element == result


def test_the_accumulator_is_the_leaf_after_the_operands() -> None:
    sums = as_row_reduction(_gemm(100, 1, 300, acc=True), AVX512)
    assert sums is not None
    assert sums.epilogue is not None
    assert [(leaf.pointer, leaf.view) for leaf in sums.epilogue.leaves()] == [(2, MatrixView(FLOAT, 1, 100, 0, 1))]


def test_an_epilogue_computes_on_a_row_of_sums() -> None:
    bias = MatrixLeaf(FLOAT, MatrixView(FLOAT, 100, 1, 7, 1), 0)
    epilogue = Expression(100, 1, (bias, ProductLeaf(FLOAT), InstructionNode(FLOAT, ElementwiseOp("fadd"), (1, 0))))
    sums = as_row_reduction(replace(_gemm(100, 1, 300, acc=True), epilogue=epilogue), AVX512)
    assert sums is not None
    assert sums.epilogue is not None
    assert [(leaf.pointer, leaf.view.col_stride) for leaf in sums.epilogue.leaves()] == [(2, 1), (3, 7)]
    *_, added, moved, last = sums.epilogue.nodes
    assert (added.operands, moved, last.operands) == (
        (0, 1),
        replace(bias, view=MatrixView(FLOAT, 1, 100, 0, 7), pointer=3),
        (2, 3),
    )
