"""Divergent control flow: each work-item takes its own path, without effects on others."""

from __future__ import annotations

from typing import Final

import numpy as np
import pytest

import tlx.frontends.tensor_language as tl
from tests.semantics.frontends.tensor_language.guarded import at_end, at_start
from tests.semantics.frontends.tensor_language.spmd.item import ITEM
from tlx.frontends.tensor_language.runtime.arguments import dtype_of
from tlx.frontends.tensor_language.types import NUMBERS

TARGETS: Final = ("generic", "avx2", "native")


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("type_", ["i8", "f16", "bf16", "i32", "f32", "f64", "c64"])
def test_only_active_work_items_touch_memory(target: str, type_: str) -> None:
    """Contiguous, strided and gathered accesses; inactive work-items' addresses lie in forbidden memory."""
    text = f"""
func @run(%X: memref<{type_}x?>, %Y: memref<{type_}x?>, %Z: memref<{type_}x?>, %first: index)
    attributes {{subgroup_size=16}} {{
  %n = size %X[0] : index
  %one = constant 1 : index
  %three = constant 3 : index
  parallel {{ {ITEM}
    %from = less_than %i, %first : bool
    %to = less_than %i, %n : bool
    %outside = not %from : bool
    %inside = and %outside, %to : bool
    if %inside {{
      %x = load %X[%i] : {type_}
      store %x, %Y[%i]
      %t = mul %i, %three : index
      %small = less_than %t, %n : bool
      if %small {{
        %y = load %X[%t] : {type_}
        %m = sub %n, %one : index
        %r = sub %m, %t : index
        store %y, %Z[%r]
      }}
    }}
  }}
}}"""
    run = tl.compile(text, target).run
    for n, first in ((5, 0), (16, 3), (9, 8), (4, 4)):
        values = np.arange(1, n + 1).astype(dtype_of(NUMBERS[type_]))
        for place in (at_end, at_start):
            x, y, z = place(values), place(np.zeros_like(values)), place(np.zeros_like(values))
            run(x, y, z, first)
            expected = np.zeros_like(values), np.zeros_like(values)
            expected[0][first:] = values[first:]
            for t in range(3 * first, n, 3):
                expected[1][n - 1 - t] = values[t]
            np.testing.assert_array_equal(y, expected[0])
            np.testing.assert_array_equal(z, expected[1])


def test_no_code_runs_without_work_items() -> None:
    """Without active work-items, no memory is accessed (a null memref) and nothing is divided."""
    text = f"""
func @run(%X: memref<i32x16>, %D: memref<i32>, %zero: i32, %Y: memref<i32x16>) {{
  %there = associated %D : bool
  parallel {{ {ITEM}
    %x = load %X[%i] : i32
    %big = greater_than %x, %zero : bool
    %r = if %big -> (i32) {{
      %d = load %D[] : i32
      %q = div %d, %zero : i32
      yield (%q)
    }} else {{
      %k = if %there -> (i32) {{
        %d = load %D[] : i32
        yield (%d)
      }} else {{
        yield (%x)
      }}
      yield (%k)
    }}
    store %r, %Y[%i]
  }}
}}"""
    x, y = -np.arange(16, dtype=np.int32), np.zeros(16, np.int32)
    run = tl.compile(text).run
    run(x, None, 0, y)
    np.testing.assert_array_equal(y, x)
    run(x, np.array(9, np.int32), 0, y)
    np.testing.assert_array_equal(y, np.full(16, 9))


@pytest.mark.parametrize("type_", ["i8", "i16", "i32", "i64"])
@pytest.mark.parametrize("op", ["div", "rem"])
def test_divisions_that_machines_stop_at(type_: str, op: str) -> None:
    """By zero, and of the smallest number by -1, in work-items that are not active."""
    text = f"""
func @run(%X: memref<{type_}x32>, %D: memref<{type_}x32>, %Y: memref<{type_}x32>, %minus: {type_})
    attributes {{work_group_size=[32,1]}} {{
  %zero = constant 0 : {type_}
  %low = constant {-(1 << (NUMBERS[type_].bits - 1)) + 1} : {type_}
  parallel {{ {ITEM}
    %x = load %X[%i] : {type_}
    %d = load %D[%i] : {type_}
    %some = not_equal %d, %zero : bool
    %large = greater_than_equal %x, %low : bool
    %fine = and %some, %large : bool
    if %fine {{
      %q = {op} %x, %d : {type_}
      store %q, %Y[%i]
    }} else {{
      if %large {{
        %q = {op} %x, %minus : {type_}
        store %q, %Y[%i]
      }}
    }}
  }}
}}"""
    chance = np.random.default_rng(1)
    dtype = dtype_of(NUMBERS[type_])
    x = chance.integers(-100, 100, 32).astype(dtype)
    d = chance.integers(-2, 3, 32).astype(dtype)
    d[:4] = -1
    x[::3] = np.iinfo(dtype).min
    y = np.full(32, 77, dtype)
    tl.compile(text).run(x, d, y, -1)
    for item in range(32):
        a, b = int(x[item]), int(d[item]) or -1
        quotient = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
        expected = quotient if op == "div" else a - b * quotient
        assert y[item] == (77 if a == np.iinfo(dtype).min else expected)


@pytest.mark.parametrize("type_", ["i8", "i16", "i32", "i64", "index"])
def test_divergent_trip_counts(type_: str) -> None:
    """Nested loops with different starts, stops and steps, up to the limits of the type."""
    bits = NUMBERS[type_].bits
    text = f"""
func @run(%A: memref<{type_}x32>, %B: memref<{type_}x32>, %S: memref<{type_}x32>, %N: memref<i32x32>,
          %M: memref<{type_}x32>) attributes {{subgroup_size=16,work_group_size=[16,2]}} {{
  %one = constant 1 : i32
  %zero = constant 0 : i32
  %three = constant 3 : i32
  parallel {{ {ITEM}
    %a = load %A[%i] : {type_}
    %stop = load %B[%i] : {type_}
    %step = load %S[%i] : {type_}
    %n, %m = for %k=%a,%stop,%step init(%c=%zero,%last=%a) -> (i32,{type_}) {{
      %short = and %c, %three : i32
      %d = for %j=%zero,%short init(%e=%c) -> (i32) {{
        %f = add %e, %one : i32
        yield (%f)
      }}
      %f = add %d, %one : i32
      yield (%f, %k)
    }}
    store %n, %N[%i]
    store %m, %M[%i]
  }}
}}"""
    chance = np.random.default_rng(bits)
    dtype = dtype_of(NUMBERS[type_])
    a, b = (chance.integers(-60, 60, 32).astype(dtype) for _ in range(2))
    high = (1 << (bits - 1)) - 1
    a[5], b[5], a[6], b[6] = high - 3, high, -high - 1, -high + 30
    step = chance.integers(1, 9, 32).astype(dtype)
    n, m = np.full(32, -1, np.int32), np.zeros(32, dtype)
    tl.compile(text).run(a, b, step, n, m)
    for item in range(32):
        rounds = list(range(int(a[item]), int(b[item]), int(step[item])))
        count = 0
        for _ in rounds:
            count += (count & 3) + 1
        assert n[item] == count
        assert m[item] == (rounds[-1] if rounds else a[item])


def test_strided_loop_of_a_subgroup() -> None:
    """`for %k=%local,%n,%size`: neighbours read neighbouring elements, the last round is cut."""
    text = f"""
func @run(%X: memref<f32x?>, %R: memref<f32x32>) attributes {{subgroup_size=16, work_group_size=[32,1]}} {{
  %n = size %X[0] : index
  %all = constant 32 : index
  %zero = constant 0.0 : f32
  parallel {{ {ITEM}
    %sum = for %k=%i,%n,%all init(%a=%zero) -> (f32) {{
      %x = load %X[%k] : f32
      %c = add %a, %x : f32
      yield (%c)
    }}
    store %sum, %R[%i]
  }}
}}"""
    kernels = tl.compile(text)
    assert "masked.load" in kernels.lowered
    assert "gather" not in kernels.lowered
    for n in (0, 1, 31, 32, 33, 100):
        x = np.random.default_rng(n).integers(-9, 9, n).astype(np.float32)
        r = np.full(32, -1, np.float32)
        kernels.run(at_end(x) if n else x, r)
        np.testing.assert_array_equal(r, [x[k::32].sum() for k in range(32)])


def test_early_exit() -> None:
    """Collatz: a flag that is carried ends the work of a work-item, not the loop."""
    text = f"""
func @run(%X: memref<i64x64>, %Y: memref<i32x64>, %rounds: i32)
    attributes {{subgroup_size=32,work_group_size=[64,1]}} {{
  %zero = constant 0 : i32
  %one = constant 1 : i32
  %l1 = constant 1 : i64
  %l3 = constant 3 : i64
  parallel {{ {ITEM}
    %x = load %X[%i] : i64
    %end, %n = for %k=%zero,%rounds init(%v=%x,%c=%zero) -> (i64,i32) {{
      %going = greater_than %v, %l1 : bool
      %w, %d = if %going -> (i64,i32) {{
        %bit = and %v, %l1 : i64
        %odd = equal %bit, %l1 : bool
        %next = if %odd -> (i64) {{
          %t = mul %v, %l3 : i64
          %u = add %t, %l1 : i64
          yield (%u)
        }} else {{
          %u = shr %v, %l1 : i64
          yield (%u)
        }}
        %f = add %c, %one : i32
        yield (%next, %f)
      }} else {{
        yield (%v, %c)
      }}
      yield (%w, %d)
    }}
    store %n, %Y[%i]
  }}
}}"""

    def steps(value: int) -> int:
        return 0 if value == 1 else 1 + steps(3 * value + 1 if value % 2 else value // 2)

    x, y = np.arange(1, 65), np.zeros(64, np.int32)
    tl.compile(text).run(x, y, 200)
    np.testing.assert_array_equal(y, [steps(int(v)) for v in x])


@pytest.mark.parametrize("first", [0, (1 << 31) - 4])
def test_sums_that_wrap_around_before_they_are_widened(first: int) -> None:
    """Neighbouring work-items' elements are neighbours only where the sum has not wrapped."""
    text = f"""
func @run(%X: memref<f32x16>, %Y: memref<f32x16>, %p: i32, %low: index) {{
  %zero = constant 0 : index
  %n = constant 16 : index
  parallel {{ {ITEM}
    %sum = add %l, %p : i32
    %wide = cast %sum : index
    %at = sub %wide, %low : index
    %begun = greater_than_equal %at, %zero : bool
    %small = less_than %at, %n : bool
    %inside = and %begun, %small : bool
    if %inside {{
      %x = load %X[%at] : f32
      store %x, %Y[%i]
    }}
  }}
}}"""
    run = tl.compile(text).run
    x = at_start(np.arange(1, 17).astype(np.float32))
    for low in {first, -(1 << 31)}:
        y = np.zeros(16, np.float32)
        run(x, y, first, low)
        sums = (np.arange(16) + first + (1 << 31)) % (1 << 32) - (1 << 31) - low
        expected = [x[at] if 0 <= at < 16 else 0 for at in sums]
        np.testing.assert_array_equal(y, expected)


@pytest.mark.parametrize("target", TARGETS)
def test_values_loaded_before_a_store_keep_their_value(target: str) -> None:
    """A masked load is not moved past a store to the same memory."""
    text = f"""
func @run(%G: memref<f32x16>, %N: memref<i32x16>, %R: memref<f32x16>, %S: memref<f32x16>) {{
  %zero = constant 0 : i32
  %c1 = constant 1.0 : f32
  parallel {{ {ITEM}
    %n = load %N[%i] : i32
    %f = cast %l : f32
    %last = for %k=%zero,%n init(%old=%f) -> (f32) {{
      %x = load %G[%i] : f32
      %y = cast %k : f32
      store %y, %G[%i]
      yield (%x)
    }}
    store %last, %R[%i]
    %odd = greater_than %n, %zero : bool
    %chosen = if %odd -> (f32) {{
      %x = load %G[%i] : f32
      store %c1, %G[%i]
      yield (%x)
    }} else {{
      yield (%f)
    }}
    store %chosen, %S[%i]
  }}
}}"""
    n = np.arange(16, dtype=np.int32) % 4
    g, r, s = np.full(16, 5, np.float32), np.zeros(16, np.float32), np.zeros(16, np.float32)
    tl.compile(text, target).run(g, n, r, s)
    np.testing.assert_array_equal(r, np.where(n > 0, np.array([0, 5, 0, 1])[n], np.arange(16)))
    np.testing.assert_array_equal(s, np.where(n > 0, n - 1, np.arange(16)))
    np.testing.assert_array_equal(g, np.where(n > 0, 1, 5))
