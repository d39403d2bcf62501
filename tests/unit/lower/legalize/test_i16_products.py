"""Products of extended bytes and words as pairs of i16: extremes and random factors, repeated along rows or not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tlx.evaluate import Machine
from tlx.ir.parser.module import parse, parse_fully
from tlx.lower.pipeline import lower
from tlx.target.lookup import find_target

Array = NDArray[Any]
ROWS, COLS = 5, 75
COUNT = ROWS * COLS
LAYOUT = "<2 x i32> <i32 0, i32 1>"
NONE = "<2 x i32> zeroinitializer"
COLUMN = f"<2 x i32> <i32 {ROWS}, i32 1>"
SHAPE = f"<2 x i32> <i32 {ROWS}, i32 {COLS}>"


def _text(left: str, right: str, cast: str) -> str:
    """`y = x * z + x * w`, z as large as x, w a number for each row."""
    return f"""define void @f(ptr noalias %y, ptr %x, ptr %z, ptr %w) {{
  %x.t = call token @llvm.tensor.load(ptr elementtype({left}) %x, {SHAPE}, {LAYOUT}, {NONE}, {NONE})
  %z.t = call token @llvm.tensor.load(ptr elementtype({right}) %z, {SHAPE}, {LAYOUT}, {NONE}, {NONE})
  %w.t = call token @llvm.tensor.load(ptr elementtype({right}) %w, {COLUMN}, {LAYOUT}, {NONE}, {NONE})
  %x.v = call <{COUNT} x {left}> @llvm.tensor.tovector(token %x.t)
  %z.v = call <{COUNT} x {right}> @llvm.tensor.tovector(token %z.t)
  %w.v = call <{COUNT} x {right}> @llvm.tensor.broadcast(token %w.t, {SHAPE}, {LAYOUT})
  %a = sext <{COUNT} x {left}> %x.v to <{COUNT} x i32>
  %b = {cast} <{COUNT} x {right}> %z.v to <{COUNT} x i32>
  %c = {cast} <{COUNT} x {right}> %w.v to <{COUNT} x i32>
  %p = mul <{COUNT} x i32> %a, %b
  %q = mul <{COUNT} x i32> %c, %a
  %s = add <{COUNT} x i32> %p, %q
  %s.t = call token @llvm.tensor.typeinfo(<{COUNT} x i32> %s, {SHAPE}, {LAYOUT}, {NONE})
  call void @llvm.tensor.store(ptr %y, token %s.t, {NONE})
  ret void
}}
"""


def _numbers(kind: np.dtype[Any], shape: tuple[int, ...], seed: int) -> Array:
    """Half of them the smallest and the largest."""
    rng, limits = np.random.default_rng(seed), np.iinfo(kind)
    some = rng.integers(limits.min, limits.max, shape, kind, endpoint=True)
    extremes = rng.choice(np.array([limits.min, limits.max], kind), shape)
    return np.where(rng.random(shape) < 0.5, some, extremes)


@pytest.mark.parametrize("target", ["generic", "avx2", "avx512"])
@pytest.mark.parametrize(
    ("left", "right", "cast"),
    [("i8", "i8", "sext"), ("i8", "i8", "zext"), ("i16", "i8", "zext"), ("i16", "i16", "sext")],
)
def test_products_are_exact(target: str, left: str, right: str, cast: str) -> None:
    module = str(lower(parse(_text(left, right, cast)), find_target(target)))
    assert ("pmadd" in module) == (target != "generic")
    kind = np.dtype(right.replace("i", "uint" if cast == "zext" else "int"))
    x = _numbers(np.dtype(left.replace("i", "int")), (ROWS, COLS), 0)
    z, w = _numbers(kind, (ROWS, COLS), 1), _numbers(kind, (ROWS, 1), 2)
    y = np.zeros((ROWS, COLS), np.int32)
    Machine(parse_fully(module)).call("f", y, x, z, w)
    wide = x.astype(np.int64)
    assert np.array_equal(y, (wide * z + wide * w).astype(np.int32))


@pytest.mark.parametrize("target", ["avx2", "avx512"])
def test_unsigned_words_are_too_long(target: str) -> None:
    assert "pmadd" not in str(lower(parse(_text("i16", "i16", "zext")), find_target(target)))
