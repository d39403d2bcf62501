"""Products of halves on a matrix unit of bfloat: sums of two bfloat numbers each."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np
import pytest

from tests.support.tools import quick
from tlx.api.validation import validate
from tlx.evaluate import evaluate
from tlx.intrinsics.numpy_types import Array
from tlx.ir.parser.module import parse
from tlx.legalize.x86.amx import FP16_SPLIT_COSTS
from tlx.lower.pipeline import lower
from tlx.target.lookup import find_target
from tlx.target.target import Target

_LAYOUTS: Final = {"rows": "<2 x i32> <i32 0, i32 1>", "columns": "<2 x i32> <i32 1, i32 0>"}
_SPECIAL: Final = np.array([np.inf, -np.inf, np.nan, 0.0, -0.0, 6e-8, -6e-8, 65504, -65504, 1, 6.1e-5], np.float16)
_PADDED: Final = "<2 x i32> <i32 0, i32 5>"
_TEXT: Final = """
define void @f(ptr noalias %c, ptr %a, ptr %b) {{
  %lhs = call token @llvm.tensor.load(ptr elementtype(half) %a, <2 x i32> {a}, {lhs},
      {padding}, <2 x i32> zeroinitializer)
  %rhs = call token @llvm.tensor.load(ptr elementtype(half) %b, <2 x i32> {b}, {rhs},
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <{size} x float> @llvm.tensor.matmul(token %lhs, token %rhs)
  %t = call token @llvm.tensor.typeinfo(<{size} x float> %m, <2 x i32> <i32 {m}, i32 {n}>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}}
"""


def _amx(**timing: object) -> Target:
    """AMX with other figures."""
    amx = find_target("amx")
    assert amx.matrix is not None
    return replace(amx, matrix=replace(amx.matrix, costs=replace(amx.matrix.costs, **timing)))


_SPLIT: Final = replace(FP16_SPLIT_COSTS, max_vector_share=float("inf"))
_TILES: Final = _amx(vector_speedups=(float("inf"), 1.0), fp16_split=_SPLIT)
"""A machine on which splitting halves always pays, and tiles are always predicted to be faster than vectors."""


def product(m: int, n: int, k: int, lhs: str = "rows", rhs: str = "rows", *, padded: bool = False) -> str:
    """`c = a @ b` of halves, by layouts; rows of a padded A have gaps."""
    layouts = {"lhs": _LAYOUTS[lhs], "rhs": _LAYOUTS[rhs]}
    padding = _PADDED if padded else "<2 x i32> zeroinitializer"
    a, b = _extents(m, k + 5 * padded, lhs), _extents(k, n, rhs)
    return _TEXT.format(m=m, n=n, size=m * n, a=a, b=b, padding=padding, **layouts)


def _extents(rows: int, columns: int, layout: str) -> str:
    outer, inner = (rows, columns) if layout == "rows" else (columns, rows)
    return f"<i32 {outer}, i32 {inner}>"


def _is_split(text: str, target: Target | None = None) -> bool:
    return "tdpbf16ps" in str(lower(parse(text), target or _TILES))


@pytest.mark.parametrize(
    "size", quick([(33, 20, 35), (16, 48, 64), (5, 70, 7), (32, 32, 32), (48, 33, 70)], 3), ids=str
)
@pytest.mark.parametrize("layouts", [("rows", "rows"), ("columns", "rows"), ("rows", "columns")], ids="-".join)
def test_products(size: tuple[int, int, int], layouts: tuple[str, str]) -> None:
    text = product(*size, *layouts)
    assert _is_split(text)
    assert validate(text, _TILES) == []


def test_rows_with_gaps() -> None:
    text = product(40, 36, 48, padded=True)
    assert _is_split(text)
    assert validate(text, _TILES) == []


_ADDED: Final = """
define void @f(ptr %c, ptr noalias %a, ptr noalias %b) {
  %acc = call token @llvm.tensor.load(ptr elementtype(float) %c, <2 x i32> <i32 70, i32 90>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %lhs = call token @llvm.tensor.load(ptr elementtype(half) %a, <2 x i32> <i32 70, i32 75>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %rhs = call token @llvm.tensor.load(ptr elementtype(half) %b, <2 x i32> <i32 75, i32 90>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <6300 x float> @llvm.tensor.smma(token %acc, token %lhs, token %rhs)
  %t = call token @llvm.tensor.typeinfo(<6300 x float> %m, <2 x i32> <i32 70, i32 90>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}
"""


@pytest.mark.parametrize(("depth", "bytes_"), [(32, (1 << 13, 1 << 12)), (64, (1 << 20, 1 << 13))])
def test_blocks(depth: int, bytes_: tuple[int, int]) -> None:
    """Sums go on from block to block of K; the parts of A, of B or of both are of some rows or columns."""
    target = _amx(vector_speedups=(float("inf"), 1.0), fp16_split=replace(_SPLIT, max_k=depth, max_bytes=bytes_))
    for text in (product(70, 90, 75), product(64, 96, 64, "columns", "columns"), _ADDED):
        lowered = str(lower(parse(text), target))
        assert lowered.count("call void @tlx.matmul.") > 1
        assert validate(text, target) == []


def test_last_block_of_few_positions() -> None:
    """Vectors would be faster there, but do not multiply each part by each."""
    text, target = product(64, 64, 65), _amx(fp16_split=replace(_SPLIT, max_k=64))
    assert _is_split(text, target)
    assert validate(text, target) == []


def test_any_halves() -> None:
    """Infinities and NaN, zeros of both signs, subnormals and the largest numbers: as products of floats."""
    generator, (m, n, k) = np.random.default_rng(5), (64, 48, 40)
    text = product(m, n, k)
    lowered = lower(parse(text), _TILES)
    for many in (0.0, 0.01, 0.3):
        a, b = (with_special(generator, shape, many) for shape in ((m, k), (k, n)))
        c = np.zeros((m, n), np.float32)
        evaluate(lowered, "f", c, a, b)
        with np.errstate(all="ignore"):
            exact = a.astype(np.float64) @ b.astype(np.float64)
            size = np.abs(a).astype(np.float64) @ np.abs(b).astype(np.float64)
        np.testing.assert_array_equal(np.isnan(c), np.isnan(exact))
        np.testing.assert_array_equal(c[np.isinf(c)], exact[np.isinf(exact)])
        finite = np.isfinite(exact)
        assert np.all(np.abs(c[finite] - exact[finite]) <= 1e-6 * size[finite])


def test_all_halves() -> None:
    """Each half by one: it comes back as it is, and no part is lost."""
    bits = np.arange(1 << 16, dtype=np.uint32).astype(np.uint16).view(np.float16).reshape(1 << 12, 16)
    c = np.zeros(bits.shape, np.float32)
    evaluate(lower(parse(product(1 << 12, 16, 16)), _TILES), "f", c, bits, np.eye(16, dtype=np.float16))
    clean = np.isfinite(bits).all(axis=1)  # an infinity by zero is NaN in the whole row
    np.testing.assert_array_equal(c[clean], bits[clean].astype(np.float32))


def with_special(generator: np.random.Generator, shape: tuple[int, int], many: float) -> Array:
    """Random halves, some of them special ones."""
    drawn = generator.standard_normal(shape).astype(np.float16)
    return np.where(generator.random(shape) < many, generator.choice(_SPECIAL, shape), drawn)


def test_products_in_loops_are_computed_as_they_are() -> None:
    """Otherwise iterations, which threads may share, would split their operands into the same memory."""
    dims = "<3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> zeroinitializer"
    text = f"""
define void @f(ptr noalias %c, ptr noalias %a, ptr noalias %b) {{
  %lhs = call token @llvm.tensor.load(ptr elementtype(half) %a, <3 x i32> <i32 4, i32 32, i32 64>, {dims},
      <3 x i32> zeroinitializer)
  %rhs = call token @llvm.tensor.load(ptr elementtype(half) %b, <3 x i32> <i32 4, i32 64, i32 32>, {dims},
      <3 x i32> zeroinitializer)
  %m = call <4096 x float> @llvm.tensor.matmul(token %lhs, token %rhs)
  %t = call token @llvm.tensor.typeinfo(<4096 x float> %m, <3 x i32> <i32 4, i32 32, i32 32>, {dims})
  call void @llvm.tensor.store(ptr %c, token %t, <3 x i32> zeroinitializer)
  ret void
}}
"""
    assert validate(text, _TILES, runs=1) == []
