; The extent of a tensor in memory fits in 64 bits.
;
; RUN: not tlx verify %s 2>&1 | FileCheck --strict-whitespace %s
; CHECK: stride_overflow_invalid.ll:10:83: error: load: strides <0, 2147483647, 2147483647> of shape 3x4x5 reach beyond 64 bits
; CHECK-NEXT: <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> <i32 0, i32 0, i32 0>, <3 x i32> <i32 0, i32 2147483647, i32 2147483647>)
; CHECK-NEXT: {{^ {82}\^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~$}}

define void @f(ptr %p) {
  %t = call token @llvm.tensor.load(ptr elementtype(float) %p, <3 x i32> <i32 3, i32 4, i32 5>,
      <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> <i32 0, i32 0, i32 0>, <3 x i32> <i32 0, i32 2147483647, i32 2147483647>)
  ret void
}
