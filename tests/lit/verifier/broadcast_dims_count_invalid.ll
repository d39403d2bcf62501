; A broadcast maps each dimension of the tensor to one of the result.
;
; RUN: not tlx verify %s 2>&1 | FileCheck --strict-whitespace %s
; CHECK: broadcast_dims_count_invalid.ll:14:102: error: broadcast: dims <1> must have 2 entries, the rank of x
; CHECK-NEXT: %u = call <24 x float> @llvm.tensor.broadcast(token %t, <3 x i32> <i32 2, i32 3, i32 4>, <1 x i32> <i32 1>)
; CHECK-NEXT: {{^ {101}\^~~~~~~$}}
; CHECK-NEXT: broadcast_dims_count_invalid.ll:12:3: note: x is 3x4 float
; CHECK-NEXT: %t = call token @llvm.tensor.typeinfo(<12 x float> %v, <2 x i32> <i32 3, i32 4>,
; CHECK-NEXT: {{^  \^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~$}}

define void @f(<12 x float> %v) {
  %t = call token @llvm.tensor.typeinfo(<12 x float> %v, <2 x i32> <i32 3, i32 4>,
      <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
  %u = call <24 x float> @llvm.tensor.broadcast(token %t, <3 x i32> <i32 2, i32 3, i32 4>, <1 x i32> <i32 1>)
  ret void
}
