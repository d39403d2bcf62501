"""Kernels that use the whole language, as seeds for mutation."""

from __future__ import annotations

from typing import Final

BLAS: Final = """\
func @fused(%alpha: f32, %A: group<memref<f32x16x8>x?>, %B: memref<f32x8x8>, %C: memref<f32x8x16>,
            %D: memref<f32x16x16x?> {alignment=64, shape_gcd=[4,4], stride_gcd=[1,16]})
    attributes {subgroup_size=16, work_group_size=[16,2]} {
  %gid = group_id.x : index
  %one = constant 1.0 : f32
  %zero = constant 0.0 : f32
  %a = load %A[%gid] : memref<f32x16x8>
  %d = subview %D[0:16,0:16,%gid] : memref<f32x16x16>
  %t = alloca {alignment=4} : memref<f32x16x8,local>
  gemm.n.t %one, %a, %B, %zero, %t   ; t = a B^T
  gemm %alpha, %t, %C, %one, %d
  lifetime_stop %t
}

func @vectors(%alpha: f64, %x: memref<f64x8>, %y: memref<f64x?,strided<?>>, %M: memref<f64x8x?>, %s: memref<f64>) {
  %0 = constant 0x1.8p-1 : f64
  %1 = constant 1.0 : f64
  axpby.atomic %alpha, %x, %1, %x
  gemv.t %alpha, %M, %x, %0, %y
  ger %alpha, %x, %y, %1, %M
  hadamard %alpha, %x, %x, %0, %x
  sum.atomic %alpha, %x, %1, %s
  cumsum %alpha, %M, 1, %0, %M
}
"""

LOOPS: Final = """\
func @loops(%A: memref<f32x?x?>, %B: group<memref<f32x?>x4, offset:?>, %n: index) {
  %c0 = constant 0 : index
  %c1 = constant 1 : index
  %f1 = constant 1.0e0 : f32
  %inf = constant -inf : f32
  %sum, %top = for %i=%c0,%n,%c1 init(%s=%f1, %m=%inf) -> (f32, f32) {
    %x = load %A[%i,%c0] : f32
    %s1 = add %s, %x : f32
    %m1 = max %m, %x : f32
    yield (%s1, %m1)
  } attributes {unroll=4}
  %some = associated %B : bool
  %all = not %some : bool
  if %all { barrier.global.local } else { barrier }
  foreach (%i,%j)=(%c0,%c0),(%n,%n) {
    %p = less_than_equal %i, %j : bool
    %v = if %p -> (f32) {
      %e = native_exp %sum : f32
      yield (%e)
    } else {
      yield (%top)
    }
    store %v, %A[%i,%j]
    %k = cast %i : i32
    %c7 = constant 7 : i32
    %r = rem %k, %c7 : i32
    %z = constant [0.5, -2.] : c32
    %re = re %z : f32
    %old = atomic_add.device.relaxed %re, %A[%i,%j] : f32
    atomic_store.release %old, %A[%i,%j]
    %new = atomic_load.acquire %A[%i,%j] : f32
  }
}
"""

VIEWS: Final = """\
func @views(%A: memref<f32x32x16x8>, %D: memref<f32x?x7,strided<2,?>>, %n: index, %m: index) {
  %0 = expand %A[1->2x8] : memref<f32x32x2x8x8>
  %1 = expand %D[0->4 x %n] : memref<f32x4x?x7,strided<2,8,?>>
  %2 = fuse %A[0,1] : memref<f32x512x8>
  %3 = subview %A[4:8,%n:%m,5] : memref<f32x8x?,strided<1,32>>
  %4 = size %D[0] : index
  %5 = subview %D[%n:0,0:%4] : memref<f32x?,strided<?>>
}
"""

MATRICES: Final = """\
func @matrices(%A: memref<f32x?x?>, %B: memref<f32x?x?>)
    attributes {subgroup_size=16, work_group_size=[16,1], "x y"={}} {
  %c0 = constant 0 : index
  %c64 = constant 64 : index
  parallel {
    %a = cooperative_matrix_load.n.rows_checked %A[%c0,%c0] : coopmatrix<f32x16x8,matrix_a>
    %b = cooperative_matrix_load.t %B[%c0,%c0] : coopmatrix<f32x8x16,matrix_b>
    %c = constant 0.0 : coopmatrix<f32x16x16,matrix_acc>
    %d = cooperative_matrix_mul_add %a, %b, %c : coopmatrix<f32x16x16,matrix_acc>
    %f = cooperative_matrix_apply (%i,%j,%v)=%d -> coopmatrix<f32x16x16,matrix_acc> {
      %p = less_than_equal %i, %j : bool
      %w = if %p -> (f32) { yield (%v) } else { %zero = constant 0.0 : f32 yield (%zero) }
      yield (%w)
    }
    %two = constant 2.0 : f32
    %g = cooperative_matrix_scale %two, %f : coopmatrix<f32x16x16,matrix_acc>
    %x = cooperative_matrix_extract %g[3] : f32
    %y = subgroup_inclusive_scan_add %x : f32
    %lane = constant 3 : i32
    %z = subgroup_broadcast %y, %lane : f32
    %h = cooperative_matrix_insert %z, %g[0] : coopmatrix<f32x16x16,matrix_acc>
    %r = cooperative_matrix_reduce_max.row %h : coopmatrix<f32x16x1,matrix_acc>
    %k = cooperative_matrix_construct %z : coopmatrix<f32x16x16,matrix_acc>
    cooperative_matrix_prefetch 0, %A[%c0,%c0], 16, 16
    cooperative_matrix_store.both_checked %h, %A[%c0,%c0]
    %o = cooperative_matrix_atomic_add.device %k, %B[%c0,%c0] : coopmatrix<f32x16x16,matrix_acc>
    %id = subgroup_id.x : i32
    %local = subgroup_local_id : i32
  }
  foreach_tile (%i,%j)=(%c0,%c0),(%c64,%c64) as (%ti,%tj)<=(32,16) {
    %tile = cooperative_matrix_load.rows_checked %A[%i,%j] : coopmatrix<f32x32x16,matrix_acc>
    cooperative_matrix_store.rows_checked %tile, %B[%i,%j]
  }
}
"""

KERNELS: Final = (BLAS, LOOPS, VIEWS, MATRICES)
