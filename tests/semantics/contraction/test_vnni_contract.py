"""Contractions of rows by a matrix whose rows the program has interleaved: read in place, the same at every stage."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import pytest

import tlx
from tests.support.tools import quick
from tlx.api.validation import validate
from tlx.lower.options import Options
from tlx.lower.remarks import Remarks

_TARGETS: Final = ("generic", "avx2", "avx512", "amx")


def _vector(numbers: Sequence[int]) -> str:
    return f"<{len(numbers)} x i32> <{', '.join(f'i32 {number}' for number in numbers)}>"


def _program(rows: Sequence[int], k: int, n: int, axes: tuple[int, int], layout: Sequence[int] | None = None) -> str:
    """Rows of any rank times a K x N matrix of bfloat, whose rows lie in memory in pairs."""
    count, rank = math.prod(rows), len(rows) + 1
    result = count * (n if axes[1] == 0 else k)
    zeros = f"<{rank} x i32> zeroinitializer"
    order = _vector(layout or range(rank))
    shape = [*rows, k]
    memory = [shape[d] for d in layout] if layout else shape
    return f"""define void @f(ptr noalias %x, ptr noalias %w, ptr noalias %y) {{
  %a = call token @llvm.tensor.load(ptr elementtype(bfloat) %x, {_vector(memory)}, {order}, {zeros}, {zeros})
  %t = call token @llvm.tensor.load(ptr elementtype(bfloat) %w, {_vector([k // 2, n, 2])}, {_vector(range(3))}, \
<3 x i32> zeroinitializer, <3 x i32> zeroinitializer)
  %q = call <{k * n} x bfloat> @llvm.tensor.reshape.permute(token %t, {_vector([0, 2, 1])}, {_vector([k, n])})
  %b = call token @llvm.tensor.typeinfo(<{k * n} x bfloat> %q, {_vector([k, n])}, {_vector([0, 1])}, \
<2 x i32> zeroinitializer)
  %p = call <{result} x float> @llvm.tensor.contract(token %a, token %b, <1 x i32> <i32 {axes[0]}>, \
<1 x i32> <i32 {axes[1]}>)
  store <{result} x float> %p, ptr %y
  ret void
}}
"""


@pytest.mark.parametrize("target", _TARGETS)
@pytest.mark.parametrize("rows", quick([(1, 5), (3, 4), (2, 1, 3), (7,), (2, 3, 2, 2)], 3), ids=str)
def test_rows_of_any_rank(rows: tuple[int, ...], target: str) -> None:
    assert validate(_program(rows, 32, 24, (len(rows), 0)), target, runs=1) == []


@pytest.mark.parametrize("target", _TARGETS)
def test_rows_that_do_not_lie_one_after_the_other(target: str) -> None:
    assert validate(_program((3, 4), 32, 24, (2, 0), layout=(1, 0, 2)), target, runs=1) == []


@pytest.mark.parametrize("target", _TARGETS)
@pytest.mark.parametrize("axes", [(2, 1), (1, 0), (0, 1)])
def test_other_dimensions_are_contracted(axes: tuple[int, int], target: str) -> None:
    rows = (4, 16) if axes == (2, 1) else (4, 16) if axes[0] == 1 else (16, 4)
    assert validate(_program(rows, 16, 16, axes), target, runs=1) == []


@pytest.mark.parametrize("target", ["avx512", "amx"])
def test_the_matrix_is_not_copied(target: str) -> None:
    remarks = Remarks()
    tlx.lower_text(_program((1, 128), 768, 768, (2, 0)), "<string>", target, options=Options(remarks=remarks))
    assert [remark.message for remark in remarks if "copy" in remark.message or "temporary" in remark.message] == []
