; Strides have one entry for each dimension.
;
; RUN: not tlx verify %s 2>&1 | FileCheck --strict-whitespace %s
; CHECK: strides_rank_invalid.ll:10:69: error: load: strides has 1 entry, shape 3x4 has 2
; CHECK-NEXT: <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <1 x i32> <i32 8>)
; CHECK-NEXT: {{^ {68}\^~~~~~~$}}

define void @f(ptr %p) {
  %t = call token @llvm.tensor.load(ptr elementtype(float) %p, <2 x i32> <i32 3, i32 4>,
      <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <1 x i32> <i32 8>)
  ret void
}
