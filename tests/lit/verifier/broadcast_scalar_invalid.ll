; A broadcast scalar has the tensor's element type.
;
; RUN: not tlx verify %s 2>&1 | FileCheck --strict-whitespace %s
; CHECK: broadcast_scalar_invalid.ll:14:66: error: broadcast: scalar is double and the tensor's elements are float
; CHECK-NEXT: %u = call <12 x float> @llvm.tensor.broadcast(token %t, double 1.0)
; CHECK-NEXT: {{^ {65}\^~~$}}
; CHECK-NEXT: broadcast_scalar_invalid.ll:12:3: note: like is 3x4 float
; CHECK-NEXT: %t = call token @llvm.tensor.typeinfo(<12 x float> %v, <2 x i32> <i32 3, i32 4>,
; CHECK-NEXT: {{^  \^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~$}}

define void @f(<12 x float> %v) {
  %t = call token @llvm.tensor.typeinfo(<12 x float> %v, <2 x i32> <i32 3, i32 4>,
      <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
  %u = call <12 x float> @llvm.tensor.broadcast(token %t, double 1.0)
  ret void
}
