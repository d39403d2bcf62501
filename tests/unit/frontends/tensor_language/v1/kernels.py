"""Kernels in the first version of the language that are right; each uses what the one before does not."""

from __future__ import annotations

from typing import Final

FUSED: Final = """
; out(e) += factor * (in(e) * stiff^T) * mass for each element e of a batch
func @two_products(%factor: f64,
                   %in: group<memref<f64x20x9>>,
                   %stiff: memref<f64x9x9>,
                   %mass: memref<f64x9x12>,
                   %out: memref<f64x20x12x?>) work_group_size(32,1) subgroup_size(16) {
    %e = group_id
    %mine = load %in[%e] : group<memref<f64x20x9>>
    %sum = subview %out[:,:,%e] : memref<f64x20x12x?>
    %tmp = alloca -> memref<f64x20x9>
    gemm.n.t 1.0, %mine, %stiff, 0.0, %tmp
        : f64, memref<f64x20x9>, memref<f64x9x9>, f64, memref<f64x20x9>
    gemm.n.n %factor, %tmp, %mass, 1.0, %sum
        : f64, memref<f64x20x9>, memref<f64x9x12>, f64, memref<f64x20x12>
    lifetime_stop %tmp
}
"""

KERNELS: Final = {
    "fused": FUSED,
    "empty": "func @nothing() { }",
    "blas": """
        func @blas(%a: f32, %A: memref<f32x6x4>, %B: memref<f32x4x6>, %x: memref<f32x4>, %y: memref<f32x6>,
                   %d: memref<f32>) {
            axpby.t 2.0, %B, %a, %A : f32, memref<f32x4x6>, f32, memref<f32x6x4>
            axpby.n %a, %x, 0.5, %x : f32, memref<f32x4>, f32, memref<f32x4>
            gemv.n 1.0, %A, %x, 0.0, %y : f32, memref<f32x6x4>, memref<f32x4>, f32, memref<f32x6>
            gemv.t.atomic 1.0, %A, %y, 1.0, %x : f32, memref<f32x6x4>, memref<f32x6>, f32, memref<f32x4>
            ger %a, %y, %x, 1.0, %A : f32, memref<f32x6>, memref<f32x4>, f32, memref<f32x6x4>
            hadamard_product 1.0, %x, %x, 0.0, %x : f32, memref<f32x4>, memref<f32x4>, f32, memref<f32x4>
            hadamard.atomic -1.0, %y, %y, 1.0, %y : f32, memref<f32x6>, memref<f32x6>, f32, memref<f32x6>
            sum.n 1.0, %A, 0.0, %y : f32, memref<f32x6x4>, f32, memref<f32x6>
            sum.t.atomic 1.0, %A, 1.0, %x : f32, memref<f32x6x4>, f32, memref<f32x4>
            sum.n 1.0, %x, 1.0, %d : f32, memref<f32x4>, f32, memref<f32>
        }
    """,
    "scalars": """
        func @scalars(%n: index, %b: i1, %i: i32, %f: f32, %o: memref<f32x?>) {
            %0 = arith.add %n, 3 : index
            %1 = arith.mul %0, %0 : index
            %2 = arith.rem %1, 7 : index
            %3 = arith.shl %i, 2 : i32
            %4 = arith.xor %3, -1 : i32
            %5 = arith.not %4 : i32
            %6 = arith.neg %f : f32
            %7 = cast %5 : i32 -> f32
            %8 = arith.div %6, %7 : f32
            %9 = cmp.ge %8, 0.25 : f32
            %10 = arith.and %9, %b : i1
            %11 = cmp.eq %10, true : i1
            %12 = cast %11 : i1 -> f32
            %13 = cast %12 : f32 -> i1
            if %13 {
                store %8, %o[0] : memref<f32x?>
            }
        }
    """,
    "saxpy": """
        func @saxpy(%a: f32, %x: memref<f32x?>, %y: memref<f32x?>) {
            %n = size %x[0] : memref<f32x?>
            foreach %i=0,%n {
                %0 = load %x[%i] : memref<f32x?>
                %1 = load %y[%i] : memref<f32x?>
                %2 = arith.mul %a, %0 : f32
                %3 = arith.add %2, %1 : f32
                store %3, %y[%i] : memref<f32x?>
            }
        }
    """,
    "choices": """
        func @choices(%x: memref<f32x?>, %limit: f32) {
            %n = size %x[0] : memref<f32x?>
            foreach %i=0,%n : index {
                %v = load %x[%i] : memref<f32x?>
                %big = cmp.gt %v, %limit : f32
                %w, %again = if %big -> (f32, i1) {
                    yield %limit, true : f32, i1
                } else {
                    %small = cmp.lt %v, 0.0 : f32
                    %u = if %small -> (f32) { yield 0.0 : f32 } else { yield %v : f32 }
                    yield %u, false : f32, i1
                }
                if %again { store %w, %x[%i] : memref<f32x?> } else { }
            }
        }
    """,
    "loops": """
        func @loops(%A: memref<f32x8x8x?>, %x: memref<f32x8>) {
            %n = size %A[2] : memref<f32x8x8x?>
            for %k=0,%n {
                %Ak = subview %A[:,:,%k] : memref<f32x8x8x?>
                for %r=0,8,2 : index {
                    %row = subview %Ak[%r,:] : memref<f32x8x8>
                    axpby.n 1.0, %row, 1.0, %x : f32, memref<f32x8,strided<8>>, f32, memref<f32x8>
                }
                barrier
            }
        }
    """,
    "views": """
        func @views(%A: memref<f32x32x16x?>, %n: index, %m: index) {
            %0 = expand %A[0->4x?] : memref<f32x32x16x?>
            %1 = expand %0[3->?x2] : memref<f32x4x8x16x?>
            %2 = fuse %1[0,1] : memref<f32x4x8x16x?x2,strided<1,4,32,512,?>>
            %3 = subview %2[%n:?,3:?,0,%m:2] : memref<f32x32x16x?x2,strided<1,32,512,?>>
            %4 = expand %3[1->%n x ?] : memref<f32x?x13x2,strided<1,32,?>>
            %5 = subview %4[:,:,:,1] : memref<f32x?x?x?x2,strided<1,32,?,?>>
            %6 = load %5[0,0,%n] : memref<f32x?x?x?,strided<1,32,?>>
            store %6, %A[0,0,0] : memref<f32x32x16x?>
        }
    """,
    "local views": """
        func @local_views(%x: memref<f32x6>, %y: memref<f32x6>) {
            %t = alloca -> memref<f32x6x4>
            %u = alloca -> memref<f32x5x7,strided<1,8>>
            %first = subview %t[:,0] : memref<f32x6x4>
            axpby.n 1.0, %x, 0.0, %first : f32, memref<f32x6>, f32, memref<f32x6>
            axpby.n.atomic 1.0, %x, 0.5, %first : f32, memref<f32x6>, f32, memref<f32x6>
            %all = fuse %t[0,1] : memref<f32x6x4>
            %six = subview %all[0:6] : memref<f32x24>
            axpby.n 1.0, %six, 1.0, %y : f32, memref<f32x6>, f32, memref<f32x6>
            lifetime_stop %u
            lifetime_stop %t
        }
    """,
    "groups": """
        func @groups(%A: group<memref<f32x?x?,strided<1,?>>, offset: ?>, %B: group<memref<f32x8x8>, offset: 64>,
                     %C: memref<f32x8x8x?>) {
            %id = group_id
            %count = group_size
            %last = arith.sub %count, 1 : index
            %other = arith.sub %last, %id : index
            %a = load %A[%other] : group<memref<f32x?x?,strided<1,?>>, offset: ?>
            %b = load %B[%id] : group<memref<f32x8x8>, offset: 64>
            %a8 = subview %a[0:8,0:8] : memref<f32x?x?,strided<1,?>>
            %c = subview %C[:,:,%id] : memref<f32x8x8x?>
            gemm.t.n.atomic 1.0, %a8, %b, 1.0, %c
                : f32, memref<f32x8x8,strided<1,?>>, memref<f32x8x8>, f32, memref<f32x8x8>
        }
    """,
    "names": """
        func @names(%c0: index, %c1_f32: f32, %0: memref<f32x4>) {
            for %c0_1=0,%c0 { %c0_2 = load %0[0] : memref<f32x4> }
            for %c0_1=0,%c0 { %c0_2 = arith.add %c0_1, 0 : index }
            axpby.n 1.0, %0, 1.0, %0 : f32, memref<f32x4>, f32, memref<f32x4>
        }
        func @more(%c0: index) subgroup_size(32) { %x = arith.add 0, %c0 : index }
    """,
    "small integers": """
        func @small_integers(%x: memref<i8x64>, %y: memref<i16x64>) {
            foreach %i=0,64 : i32 {
                %j = cast %i : i32 -> index
                %v = load %x[%j] : memref<i8x64>
                %w = cast %v : i8 -> i16
                %u = arith.shr %w, 1 : i16
                store %u, %y[%j] : memref<i16x64>
            }
        }
    """,
}
