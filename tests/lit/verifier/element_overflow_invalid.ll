; The number of elements fits in 64 bits.
;
; RUN: not tlx verify %s 2>&1 | FileCheck --strict-whitespace %s
; CHECK: element_overflow_invalid.ll:9:71: error: load: shape <2147483647, 2147483647, 3> has 13835058042397261827 elements, which overflows 64 bits
; CHECK-NEXT: %t = call token @llvm.tensor.load(ptr elementtype(i8) %p, <3 x i32> <i32 2147483647, i32 2147483647, i32 3>,
; CHECK-NEXT: {{^ {70}\^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~$}}

define void @f(ptr %p) {
  %t = call token @llvm.tensor.load(ptr elementtype(i8) %p, <3 x i32> <i32 2147483647, i32 2147483647, i32 3>,
      <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> <i32 0, i32 0, i32 0>, <3 x i32> <i32 0, i32 0, i32 0>)
  ret void
}
