; llvm.is.fpclass, to which LLVM's optimiser rewrites tests of exponents, is an elementwise operation.
; RUN: tlx-lower %s --target=avx512 --check --remarks=%t.remarks -o /dev/null
; RUN: FileCheck %s --input-file=%t.remarks

; CHECK: fused llvm.is.fpclass into select
define void @finite(ptr noalias %x, ptr noalias %y) {
  %v = load <5000 x float>, ptr %x
  %k = call <5000 x i1> @llvm.is.fpclass.v5000f32(<5000 x float> %v, i32 504)
  %r = select <5000 x i1> %k, <5000 x float> %v, <5000 x float> splat (float 7.0)
  store <5000 x float> %r, ptr %y
  ret void
}
declare <5000 x i1> @llvm.is.fpclass.v5000f32(<5000 x float>, i32)
