; Strides are not negative.
;
; RUN: not tlx verify %s 2>&1 | FileCheck --strict-whitespace %s
; CHECK: stride_negative_invalid.ll:10:69: error: load: stride -8 of dimension 1 is negative
; CHECK-NEXT: <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 -8>)
; CHECK-NEXT: {{^ {68}\^~~~~~~~~~~~~~~$}}

define void @f(ptr %p) {
  %t = call token @llvm.tensor.load(ptr elementtype(float) %p, <2 x i32> <i32 3, i32 4>,
      <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 -8>)
  ret void
}
