; Strides have one entry for each dimension.
;
; RUN: not tlx verify %s 2>&1 | FileCheck --strict-whitespace %s
; CHECK: reduce_strides_rank_invalid.ll:14:95: error: reduce.add: strides <2, 2, 2> must have 2 entries, the rank of x
; CHECK-NEXT: %c = call <6 x float> @llvm.tensor.reduce.add(token %x, <2 x i32> <i32 2, i32 2>, <3 x i32> <i32 2, i32 2, i32 2>)
; CHECK-NEXT: {{^ {94}\^~~~~~~~~~~~~~~~~~~~~$}}
; CHECK-NEXT: reduce_strides_rank_invalid.ll:12:3: note: x is 4x6 float
; CHECK-NEXT: %x = call token @llvm.tensor.typeinfo(<24 x float> %v, <2 x i32> <i32 4, i32 6>,
; CHECK-NEXT: {{^  \^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~$}}

define void @f(<24 x float> %v) {
  %x = call token @llvm.tensor.typeinfo(<24 x float> %v, <2 x i32> <i32 4, i32 6>,
      <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
  %c = call <6 x float> @llvm.tensor.reduce.add(token %x, <2 x i32> <i32 2, i32 2>, <3 x i32> <i32 2, i32 2, i32 2>)
  ret void
}
