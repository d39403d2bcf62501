; The number of elements fits in 64 bits.
;
; RUN: tlx verify %s 2>&1 | count 0

define void @f(ptr %p) {
  %t = call token @llvm.tensor.load(ptr elementtype(i8) %p, <2 x i32> <i32 2147483647, i32 2147483647>,
      <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 0>)
  ret void
}
