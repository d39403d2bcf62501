; Extents are at least 1.
;
; RUN: not tlx verify %s 2>&1 | FileCheck --strict-whitespace %s
; CHECK: extent_invalid.ll:9:67: error: typeinfo: shape <4, 0> has extent 0 in dimension 1: extents are at least 1
; CHECK-NEXT: %t = call token @llvm.tensor.typeinfo(<4 x float> %v, <2 x i32> <i32 4, i32 0>,
; CHECK-NEXT: {{^ {66}\^~~~~~~~~~~~~~$}}

define void @f(<4 x float> %v) {
  %t = call token @llvm.tensor.typeinfo(<4 x float> %v, <2 x i32> <i32 4, i32 0>,
      <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
  ret void
}
