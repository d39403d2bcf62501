; The shape of a broadcast has positive extents.
;
; RUN: not tlx verify %s 2>&1 | FileCheck --strict-whitespace %s
; CHECK: broadcast_shape_invalid.ll:14:68: error: broadcast: out_shape <0, 3> must be at least 1 in every dimension
; CHECK-NEXT: %c = call <6 x float> @llvm.tensor.broadcast(token %x, <2 x i32> <i32 0, i32 3>, <1 x i32> <i32 1>)
; CHECK-NEXT: {{^ {67}\^~~~~~~~~~~~~~$}}
; CHECK-NEXT: broadcast_shape_invalid.ll:12:3: note: x is 3 float
; CHECK-NEXT: %x = call token @llvm.tensor.typeinfo(<3 x float> %v, <1 x i32> <i32 3>,
; CHECK-NEXT: {{^  \^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~$}}

define void @f(<3 x float> %v) {
  %x = call token @llvm.tensor.typeinfo(<3 x float> %v, <1 x i32> <i32 3>,
      <1 x i32> <i32 0>, <1 x i32> <i32 0>)
  %c = call <6 x float> @llvm.tensor.broadcast(token %x, <2 x i32> <i32 0, i32 3>, <1 x i32> <i32 1>)
  ret void
}
