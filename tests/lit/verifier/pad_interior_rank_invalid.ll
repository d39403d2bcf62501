; Interior padding has one entry for each dimension.
;
; RUN: not tlx verify %s 2>&1 | FileCheck --strict-whitespace %s
; CHECK: pad_interior_rank_invalid.ll:14:128: error: pad: interior <1> must have 2 entries, the rank of x
; CHECK-NEXT: %c = call <21 x float> @llvm.tensor.pad(token %x, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer, float 0.0, <1 x i32> <i32 1>)
; CHECK-NEXT: {{^ {127}\^~~~~~~$}}
; CHECK-NEXT: pad_interior_rank_invalid.ll:12:3: note: x is 3x4 float
; CHECK-NEXT: %x = call token @llvm.tensor.typeinfo(<12 x float> %v, <2 x i32> <i32 3, i32 4>,
; CHECK-NEXT: {{^  \^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~$}}

define void @f(<12 x float> %v) {
  %x = call token @llvm.tensor.typeinfo(<12 x float> %v, <2 x i32> <i32 3, i32 4>,
      <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
  %c = call <21 x float> @llvm.tensor.pad(token %x, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer, float 0.0, <1 x i32> <i32 1>)
  ret void
}
