"""Loops of neighbouring work-items over neighbouring numbers: full rounds first, then what is left."""

from __future__ import annotations

from itertools import product
from typing import Final

import numpy as np
import pytest

import tlx.frontends.tensor_language as tl
from tlx.frontends.tensor_language.types import NUMBERS

LANES: Final = 8
MOST: Final = 1000  # rounds


@pytest.mark.parametrize("type_", ["i8", "i16", "i32", "i64", "index"])
@pytest.mark.parametrize("distance", [1, 3, -1, 0])
def test_bounds(type_: str, distance: int) -> None:
    """Short and long steps, ends of the type, lanes that wrap around before the loop begins."""
    text = f"""
func @run(%from: {type_}, %to: {type_}, %step: {type_}, %N: memref<i64x{LANES}>, %S: memref<{type_}x{LANES}>,
          %W: memref<i64x{LANES}>) attributes {{subgroup_size={LANES}}} {{
  %distance = constant {distance} : {type_}
  %zero = constant 0 : {type_}
  %none = constant 0 : i64
  %one = constant 1 : i64
  parallel {{
    %l = subgroup_local_id : i32
    %i = cast %l : index
    %lane = cast %l : {type_}
    %away = mul %lane, %distance : {type_}
    %start = add %from, %away : {type_}
    %n, %s, %w = for %k=%start,%to,%step init(%a=%none,%b=%zero,%c=%none) -> (i64,{type_},i64) {{
      %d = add %a, %one : i64
      %e = xor %b, %k : {type_}
      %wide = cast %k : i64
      %f = add %c, %wide : i64
      yield (%d, %e, %f)
    }}
    store %n, %N[%i]
    store %s, %S[%i]
    store %w, %W[%i]
  }}
}}""".replace("%lane = cast %l : i32", "%lane = add %l, %zero : i32")
    run = tl.compile(text).run
    bits = NUMBERS[type_].bits
    low, high = -(1 << (bits - 1)), (1 << (bits - 1)) - 1
    ends = [(0, 40), (0, 8), (0, 7), (0, 9), (5, 5), (9, 2), (-20, 20)]
    ends += [(high - 30, high), (high - 3, high), (low, low + 30), (low + 1, low + 9), (high - 9, low + 30)]
    for (start, stop), step in product(ends, (1, 3, 8, 24, 100, high)):
        firsts = [(start + lane * distance - low) % (1 << bits) + low for lane in range(LANES)]
        rounds = [range(first, stop, step) for first in firsts]
        if any(stop - first > MOST * step for first in firsts):
            continue
        n, s, w = (np.full(LANES, -1, d) for d in (np.int64, f"int{bits}", np.int64))
        run(start, stop, step, n, s, w)
        for lane, values in enumerate(rounds):
            folded = 0
            for value in values:
                folded ^= value
            total = (sum(values) + (1 << 63)) % (1 << 64) - (1 << 63)
            assert (n[lane], s[lane], w[lane]) == (len(values), folded, total), (start, stop, step, lane)


@pytest.mark.parametrize("type_", ["i32", "index"])
def test_no_masks_where_all_run(type_: str) -> None:
    """A row of a matrix each subgroup, elements in turn: plain loads in the full rounds, masked ones after."""
    text = f"""
func @run(%X: memref<f32x?x?>, %Y: memref<f32x?x?>, %n: {type_})
    attributes {{subgroup_size=16,work_group_size=[16,4]}} {{
  %half = constant 0.5 : f32
  parallel {{
    %l = subgroup_local_id : i32
    %s = subgroup_linear_id : i32
    %j = cast %s : index
    %size = subgroup_size : i32
    %step = {"add %size, %zero : i32" if type_ == "i32" else "cast %size : index"}
    %first = {"add %l, %zero : i32" if type_ == "i32" else "cast %l : index"}
    for %k=%first,%n,%step {{
      %i = {"cast %k : index" if type_ == "i32" else "max %k, %k : index"}
      %x = load %X[%i,%j] : f32
      %p = mul %x, %half : f32
      %big = greater_than %p, %half : bool
      if %big {{
        store %p, %Y[%i,%j]
      }}
    }}
  }}
}}""".replace("parallel {", "%zero = constant 0 : i32\n  parallel {").replace(
        "max %k, %k : index", "add %k, %o : index"
    )
    text = text.replace("%half = constant", "%o = constant 0 : index\n  %half = constant")
    kernels = tl.compile(text)
    assert kernels.lowered.count("call <16 x float> @llvm.masked.load") == 1
    assert "gather" not in kernels.lowered
    for n in (0, 5, 16, 50):
        x = np.asfortranarray(np.random.default_rng(n).normal(size=(n or 1, 4)).astype(np.float32) * 4)
        y = np.zeros_like(x)
        kernels.run(x, y, n)
        inside = (x / 2 > 0.5) & (np.arange(len(x)) < n)[:, None]
        np.testing.assert_array_equal(y, np.where(inside, x / 2, 0))
