"""A kernel of a matrix unit has the code of a tile once, whether the tile packs a panel of B or not."""

from __future__ import annotations

import pytest

from tlx.lower.pipeline import lower_text

PROGRAM = """
define void @f(ptr noalias %c, ptr %a, ptr %b) {{
  %x = call token @llvm.tensor.load(ptr elementtype(bfloat) %a, <2 x i32> <i32 {m}, i32 {k}>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %y = call token @llvm.tensor.load(ptr elementtype(bfloat) %b, <2 x i32> <i32 {k}, i32 {n}>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <{mn} x bfloat> @llvm.tensor.matmul(token %x, token %y)
  %t = call token @llvm.tensor.typeinfo(<{mn} x bfloat> %m, <2 x i32> <i32 {m}, i32 {n}>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer)
  %r = call <{mn} x bfloat> @llvm.tensor.relu(token %t)
  %u = call token @llvm.tensor.typeinfo(<{mn} x bfloat> %r, <2 x i32> <i32 {m}, i32 {n}>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %u, <2 x i32> zeroinitializer)
  ret void
}}
"""


def _products(m: int, n: int, k: int) -> int:
    """The instructions that multiply tiles."""
    return lower_text(PROGRAM.format(m=m, n=n, k=k, mn=m * n), target="amx").count("@llvm.x86.tdpbf16ps(i8")


@pytest.mark.parametrize(("n", "k"), [(64, 192), (96, 64), (676, 192)])
def test_three_rows_of_tiles_have_the_code_of_one(n: int, k: int) -> None:
    assert 0 < _products(96, n, k) <= _products(32, n, k)
