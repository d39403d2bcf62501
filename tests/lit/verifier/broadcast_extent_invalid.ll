; Only dimensions of extent 1 are repeated.
;
; RUN: not tlx verify %s 2>&1 | FileCheck --strict-whitespace %s
; CHECK: broadcast_extent_invalid.ll:14:55: error: broadcast: dimension 1 of x has extent 4 and becomes dimension 2 of 2x3x5, extent 5: extents must agree or be 1
; CHECK-NEXT: %u = call <30 x float> @llvm.tensor.broadcast(token %t, <3 x i32> <i32 2, i32 3, i32 5>, <2 x i32> <i32 1, i32 2>)
; CHECK-NEXT: {{^ {54}\^~$}}
; CHECK-NEXT: broadcast_extent_invalid.ll:12:3: note: x is 3x4 float
; CHECK-NEXT: %t = call token @llvm.tensor.typeinfo(<12 x float> %v, <2 x i32> <i32 3, i32 4>,
; CHECK-NEXT: {{^  \^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~$}}

define void @f(<12 x float> %v) {
  %t = call token @llvm.tensor.typeinfo(<12 x float> %v, <2 x i32> <i32 3, i32 4>,
      <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
  %u = call <30 x float> @llvm.tensor.broadcast(token %t, <3 x i32> <i32 2, i32 3, i32 5>, <2 x i32> <i32 1, i32 2>)
  ret void
}
