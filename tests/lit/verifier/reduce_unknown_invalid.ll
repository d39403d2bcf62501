; The name of a reduction is known.
;
; RUN: not tlx verify %s 2>&1 | FileCheck --strict-whitespace %s
; CHECK: reduce_unknown_invalid.ll:11:25: error: unknown intrinsic @llvm.tensor.reduce.sum; did you mean @llvm.tensor.reduce.mul?
; CHECK-NEXT: %c = call <6 x float> @llvm.tensor.reduce.sum(token %x, <2 x i32> <i32 2, i32 2>, <2 x i32> <i32 2, i32 2>)
; CHECK-NEXT: {{^ {24}\^~~~~~~~~~~~~~~~~~~~~~~$}}

define void @f(<24 x float> %v) {
  %x = call token @llvm.tensor.typeinfo(<24 x float> %v, <2 x i32> <i32 4, i32 6>,
      <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
  %c = call <6 x float> @llvm.tensor.reduce.sum(token %x, <2 x i32> <i32 2, i32 2>, <2 x i32> <i32 2, i32 2>)
  ret void
}
