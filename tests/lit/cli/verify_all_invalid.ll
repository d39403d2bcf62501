; All errors are reported, not just the first.
;
; RUN: not tlx verify %s 2>&1 | FileCheck %s
; CHECK: verify_all_invalid.ll:[[#@LINE+4]]:{{[0-9]+}}: error: typeinfo: expected 12 elements
; CHECK: verify_all_invalid.ll:[[#@LINE+9]]:{{[0-9]+}}: error: unknown intrinsic @llvm.tensor.nonsense

define void @f(<9 x float> %v) {
  %a = call token @llvm.tensor.typeinfo(<9 x float> %v, <2 x i32> <i32 3, i32 4>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
  ret void
}

define void @g(<9 x float> %v) {
  %a = call token @llvm.tensor.typeinfo(<9 x float> %v, <2 x i32> <i32 3, i32 3>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
  %b = call <9 x float> @llvm.tensor.nonsense(token %a)
  ret void
}
