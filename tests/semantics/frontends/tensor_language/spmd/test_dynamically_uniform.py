"""Values that are loaded by each work-item, and happen to be the same for all: matrix instructions take them."""

from __future__ import annotations

import numpy as np
import pytest

import tlx.frontends.tensor_language as tl
from tlx.diagnostics import TlxWarning


@pytest.mark.parametrize("rounds", [0, 3])
def test_matrices(rounds: int) -> None:
    """Positions, views, members of groups, scalars; conditions and bounds of control flow that gives matrices."""
    text = """
func @run(%X: memref<f32x64x16>, %P: memref<indexx16>, %V: memref<f32x16>, %B: memref<i32x16>,
          %G: group<memref<f32x64x16>x?>) {
  %c0 = constant 0 : index
  %zero = constant 0 : i32
  parallel {
    %l = subgroup_local_id : i32
    %i = cast %l : index
    %x = load %P[%i] : index
    %v = load %V[%i] : f32
    %b = load %B[%i] : i32
    %yes = not_equal %b, %zero : bool
    %m = load %G[%x] : memref<f32x64x16>
    %w = subview %m[%x:16,0:16] : memref<f32x16x16,strided<1,64>>
    %t = if %yes -> (coopmatrix<f32x16x16,matrix_acc>) {
      %q = cooperative_matrix_load %X[%x,%c0] : coopmatrix<f32x16x16,matrix_acc>
      yield (%q)
    } else {
      %q = cooperative_matrix_construct %v : coopmatrix<f32x16x16,matrix_acc>
      yield (%q)
    }
    %u = cooperative_matrix_scale %v, %t : coopmatrix<f32x16x16,matrix_acc>
    %r = for %k=%zero,%b init(%a=%u) -> (coopmatrix<f32x16x16,matrix_acc>) {
      %s = add %a, %t : coopmatrix<f32x16x16,matrix_acc>
      yield (%s)
    }
    cooperative_matrix_store %r, %X[%x,%c0]
    cooperative_matrix_store %r, %w[%c0,%c0]
  }
}"""
    x = np.asfortranarray(np.arange(1024).reshape(64, 16).astype(np.float32))
    members = [np.zeros((64, 16), np.float32, order="F") for _ in range(4)]
    expected = x.copy()
    tile = expected[2:18].copy() if rounds else np.full((16, 16), 5, np.float32)
    expected[2:18] = tile * 5 + rounds * tile
    five = np.full(16, 5, np.float32)
    tl.compile(text).run(x, np.full(16, 2), five, np.full(16, rounds, np.int32), members)
    np.testing.assert_array_equal(x, expected)
    np.testing.assert_array_equal(members[2][2:18], expected[2:18])
    assert not any(member.any() for member in (*members[:2], members[3]))


def test_barriers() -> None:
    """Loops and branches with barriers inside carry matrices and pass tiles round a work-group."""
    text = """
func @run(%X: memref<f32x64x16>, %N: memref<i32x64>) attributes {subgroup_size=16, work_group_size=[64,1]} {
  %c0 = constant 0 : index
  %c63 = constant 63 : index
  %c16 = constant 16 : index
  %zero = constant 0 : i32
  %one = constant 1 : i32
  parallel {
    %s = subgroup_linear_id : i32
    %size = subgroup_size : i32
    %b = mul %s, %size : i32
    %l = subgroup_local_id : i32
    %g = add %b, %l : i32
    %gi = cast %g : index
    %n = load %N[%gi] : i32
    %i = cast %b : index
    %up = add %i, %c16 : index
    %next = and %up, %c63 : index
    %first = cooperative_matrix_load %X[%i,%c0] : coopmatrix<f32x16x16,matrix_acc>
    %sum = for %k=%zero,%n init(%a=%first) -> (coopmatrix<f32x16x16,matrix_acc>) {
      %t = cooperative_matrix_load %X[%next,%c0] : coopmatrix<f32x16x16,matrix_acc>
      %bit = and %k, %one : i32
      %odd = equal %bit, %one : bool
      %c = if %odd -> (coopmatrix<f32x16x16,matrix_acc>) {
        barrier.global
        %d = sub %a, %t : coopmatrix<f32x16x16,matrix_acc>
        yield (%d)
      } else {
        barrier.global
        %d = add %a, %t : coopmatrix<f32x16x16,matrix_acc>
        yield (%d)
      }
      cooperative_matrix_store %t, %X[%i,%c0]
      barrier.global
      yield (%c)
    }
    cooperative_matrix_store %sum, %X[%i,%c0]
  }
}"""
    x = np.asfortranarray(np.random.default_rng(1).integers(-9, 9, (64, 16)).astype(np.float32))
    tiles = [x[k : k + 16].copy() for k in range(0, 64, 16)]
    sums = [tile.copy() for tile in tiles]
    for k in range(3):
        tiles = [*tiles[1:], tiles[0]]
        sums = [total - tile if k % 2 else total + tile for total, tile in zip(sums, tiles, strict=True)]
    with pytest.warns(TlxWarning, match="%n may differ between work-items"):
        run = tl.compile(text).run
    run(x, np.full(64, 3, np.int32))
    np.testing.assert_array_equal(x, np.vstack(sums))
