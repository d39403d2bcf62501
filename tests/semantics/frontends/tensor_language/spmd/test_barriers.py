"""Barriers between subgroups: all work-items read after a barrier what any of them wrote before it."""

from __future__ import annotations

from typing import Final

import numpy as np
import pytest

import tlx.frontends.tensor_language as tl
from tests.semantics.frontends.tensor_language.spmd.item import ITEM

WORK_GROUPS: Final = [(16, 16, 1), (16, 64, 1), (8, 16, 4), (1, 8, 2), (32, 64, 2)]
TARGETS: Final = ("generic", "avx2", "native")


@pytest.mark.parametrize(("lanes", "rows", "columns"), WORK_GROUPS)
def test_tree_reduction(lanes: int, rows: int, columns: int) -> None:
    """log2(n) rounds of a `for` with barriers inside, and an `if` on a carried value of it that varies."""
    count = rows * columns
    rounds = count.bit_length() - 1
    text = f"""
func @run(%X: memref<f32x{count}>, %Y: memref<f32>)
    attributes {{subgroup_size={lanes}, work_group_size=[{rows},{columns}]}} {{
  %M = alloca : memref<f32x{count},local>
  %from = constant 0 : i32
  %to = constant {rounds} : i32
  %one = constant 1 : i32
  %half = constant {count // 2} : i32
  %first = constant 0 : index
  parallel {{ {ITEM}
    %x = load %X[%i] : f32
    store %x, %M[%i]
    barrier.local
    %n = for %k=%from,%to init(%h=%half) -> (i32) {{
      %low = less_than %g, %h : bool
      if %low {{
        %up = add %g, %h : i32
        %j = cast %up : index
        %a = load %M[%i] : f32
        %c = load %M[%j] : f32
        %d = add %a, %c : f32
        store %d, %M[%i]
      }}
      barrier.local
      %next = shr %h, %one : i32
      yield (%next)
    }}
    %is_last = equal %g, %n : bool
    if %is_last {{
      %sum = load %M[%first] : f32
      store %sum, %Y[]
    }}
  }}
}}"""
    x = np.random.default_rng(count).integers(-9, 9, count).astype(np.float32)
    y = np.array(-1, np.float32)
    tl.compile(text, TARGETS[lanes % 3]).run(x, y)
    assert y == x.sum()


@pytest.mark.parametrize(("lanes", "rows", "columns"), WORK_GROUPS)
def test_stencil(lanes: int, rows: int, columns: int) -> None:
    """Steps of a stencil between two halves of local memory, picked by a uniform `if` that yields a number."""
    count = rows * columns
    text = f"""
func @run(%X: memref<f32x{count}>, %Y: memref<f32x{count}>, %steps: i32)
    attributes {{subgroup_size={lanes}, work_group_size=[{rows},{columns}]}} {{
  %M = alloca : memref<f32x{count}x2,local>
  %c0 = constant 0 : i32
  %c1 = constant 1 : i32
  %half = constant 0.5 : f32
  %zero = constant 0 : index
  %one = constant 1 : index
  %last = constant {count - 1} : index
  parallel {{ {ITEM}
    %x = load %X[%i] : f32
    %l1 = sub %i, %one : index
    %left = max %l1, %zero : index
    %r1 = add %i, %one : index
    %right = min %r1, %last : index
    store %x, %M[%i,%zero]
    barrier.local
    %v, %f = for %k=%c0,%steps init(%old=%x,%from=%zero) -> (f32,index) {{
      %to = sub %one, %from : index
      %a = load %M[%left,%from] : f32
      %c = load %M[%right,%from] : f32
      %sum = add %a, %c : f32
      %new = mul %sum, %half : f32
      store %new, %M[%i,%to]
      barrier.local
      %bit = and %k, %c1 : i32
      %odd = equal %bit, %c1 : bool
      %total = if %odd -> (f32) {{
        %t = add %old, %new : f32
        barrier
        yield (%t)
      }} else {{
        %t = sub %old, %new : f32
        barrier.global.local
        yield (%t)
      }}
      yield (%total, %to)
    }}
    store %v, %Y[%i]
  }}
}}"""
    x = np.random.default_rng(count).integers(-9, 9, count).astype(np.float32)
    run = tl.compile(text, TARGETS[columns % 3]).run
    for steps in (0, 1, 4):
        y = np.zeros(count, np.float32)
        run(x, y, steps)
        current, total = x, x
        for k in range(steps):
            current = 0.5 * (np.append(current[0], current[:-1]) + np.append(current[1:], current[-1]))
            total = total + current if k % 2 else total - current
        np.testing.assert_array_equal(y, total)


def test_values_of_all_kinds_live_across_barriers() -> None:
    """Truth values, narrow and complex numbers, views at uniform and at varying places, subgroup ids."""
    text = f"""
func @run(%X: memref<f32x64x2>, %H: memref<f16x64>, %C: memref<c32x64>, %R: memref<f32x64>)
    attributes {{subgroup_size=16, work_group_size=[32,2]}} {{
  %M = alloca : memref<f32x64,local>
  %c63 = constant 63 : index
  %zero = constant 0.0 : f32
  %one = constant 1 : index
  parallel {{ {ITEM}
    %sx = subgroup_id.x : i32
    %sy = subgroup_id.y : i32
    %start = cast %b : index
    %mine = subview %X[%start:16,%one] : memref<f32x16>
    %own = subview %X[%i:1,0:2] : memref<f32x1x2,strided<1,64>>
    %h = load %H[%i] : f16
    %c = load %C[%i] : c32
    %odd = constant 1 : i32
    %bit = and %l, %odd : i32
    %even = less_than %bit, %odd : bool
    %x = load %X[%i,%one] : f32
    store %x, %M[%i]
    barrier.local
    %r = sub %c63, %i : index
    %other = load %M[%r] : f32
    %li = cast %l : index
    %p = load %mine[%li] : f32
    %k0 = constant 0 : index
    %q = load %own[%k0,%k0] : f32
    %h32 = cast %h : f32
    %im = im %c : f32
    %sy10 = constant 10 : i32
    %t = mul %sy, %sy10 : i32
    %ids = add %t, %sx : i32
    %idf = cast %ids : f32
    %a1 = add %other, %p : f32
    %a2 = add %a1, %q : f32
    %a3 = add %a2, %h32 : f32
    %a4 = add %a3, %im : f32
    %a5 = add %a4, %idf : f32
    %v = if %even -> (f32) {{ yield (%a5) }} else {{ yield (%zero) }}
    store %v, %R[%i]
  }}
}}"""
    chance = np.random.default_rng(3)
    x = np.asfortranarray(chance.integers(-99, 99, (64, 2)).astype(np.float32))
    h = chance.integers(-99, 99, 64).astype(np.float16)
    c = (1j * chance.integers(-99, 99, 64)).astype(np.complex64)
    r = np.full(64, -1, np.float32)
    tl.compile(text).run(x, h, c, r)
    ids = np.repeat([0, 1, 10, 11], 16)
    expected = x[::-1, 1] + x[:, 1] + x[:, 0] + h + c.imag + ids
    expected[1::2] = 0
    np.testing.assert_array_equal(r, expected.astype(np.float32))


def test_matrices_live_across_barriers() -> None:
    """Each subgroup loads a tile, all meet, each writes it where another has read."""
    text = """
func @run(%X: memref<f32x64x16>) attributes {subgroup_size=16, work_group_size=[64,1]} {
  %c0 = constant 0 : index
  %c48 = constant 48 : index
  parallel {
    %s = subgroup_linear_id : i32
    %size = subgroup_size : i32
    %b = mul %s, %size : i32
    %i = cast %b : index
    %t = cooperative_matrix_load %X[%i,%c0] : coopmatrix<f32x16x16,matrix_acc>
    barrier.global
    %j = sub %c48, %i : index
    cooperative_matrix_store %t, %X[%j,%c0]
  }
}"""
    x = np.asfortranarray(np.arange(64 * 16).reshape(64, 16).astype(np.float32))
    expected = np.vstack([x[48:], x[32:48], x[16:32], x[:16]])
    tl.compile(text).run(x)
    np.testing.assert_array_equal(x, expected)


STARTS: Final = ("%g", "%s", "%l", "%zero")
STEPS: Final = ("%one", "%narrow", "%wide")


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("element", ["i8", "i32"])
@pytest.mark.filterwarnings("ignore::tlx.diagnostics.TlxWarning")
def test_each_work_item_has_its_own_index(start: str, step: str, element: str) -> None:
    """Three trips for all, from starts and by steps that work-items, subgroups or all of them share."""
    text = f"""
func @run(%R: memref<i32x32x8>) attributes {{subgroup_size=8, work_group_size=[16,2]}} {{
  %M = alloca : memref<i32x32,local>
  %c31 = constant 31 : index
  %c3 = constant 3 : i32
  %inner_step = constant 2 : i32
  parallel {{ {ITEM}
    %zero = constant 0 : i32
    %one = constant 1 : i32
    %bit = and %g, %one : i32
    %narrow = add %bit, %one : i32
    %wide = add %s, %one : i32
    %first = cast {start} : {element}
    %step = cast {step} : {element}
    %three = cast %c3 : {element}
    %distance = mul %step, %three : {element}
    %last = add %first, %distance : {element}
    %sum, %count = for %k=%first,%last,%step init(%a=%zero,%n=%zero) -> (i32,i32) {{
      %k32 = cast %k : i32
      store %k32, %M[%i]
      barrier.local
      %j = sub %c31, %i : index
      %other = load %M[%j] : i32
      %slot = cast %n : index
      store %other, %R[%i,%slot]
      %end = add %k32, %inner_step : i32
      %t = for %q=%k32,%end init(%c=%a) -> (i32) {{
        barrier.local
        %d = add %c, %q : i32
        yield (%d)
      }}
      %m = add %n, %one : i32
      yield (%t, %m)
    }}
    %s3 = constant 3 : index
    store %sum, %R[%i,%s3]
  }}
}}"""
    item = np.arange(32)
    first = {"%g": item, "%s": item // 8, "%l": item % 8, "%zero": 0 * item}[start]
    width = {"%one": 1 + 0 * item, "%narrow": 1 + item % 2, "%wide": 1 + item // 8}[step]
    expected = np.full((32, 8), -1, np.int32)
    own = [first + trip * width for trip in range(3)]
    for trip in range(3):
        expected[:, trip] = own[trip][::-1]
    expected[:, 3] = sum(2 * k + 1 for k in own)
    r = np.asfortranarray(np.full((32, 8), -1, np.int32))
    tl.compile(text).run(r)
    np.testing.assert_array_equal(r, expected)


def test_index_of_its_own_in_a_loop_of_matrices() -> None:
    """A subgroup makes as many trips, as the matrix belongs to all of it; the index is each work-item's."""
    text = """
func @run(%R: memref<i32x16>, %Y: memref<f32x16x16>) {
  parallel {
    %l = subgroup_local_id : i32
    %i = cast %l : index
    %zero = constant 0 : i32
    %three = constant 3 : i32
    %c0 = constant 0 : index
    %end = add %l, %three : i32
    %m = constant 1.0 : coopmatrix<f32x16x16,matrix_acc>
    %n, %sum = for %k=%l,%end init(%t=%m,%s=%zero) -> (coopmatrix<f32x16x16,matrix_acc>,i32) {
      %u = add %t, %t : coopmatrix<f32x16x16,matrix_acc>
      %v = add %s, %k : i32
      yield (%u, %v)
    }
    cooperative_matrix_store %n, %Y[%c0,%c0]
    store %sum, %R[%i]
  }
}"""
    r, y = np.full(16, -1, np.int32), np.zeros((16, 16), np.float32, order="F")
    tl.compile(text).run(r, y)
    np.testing.assert_array_equal(r, 3 * np.arange(16) + 3)
    np.testing.assert_array_equal(y, np.full((16, 16), 8, np.float32))
