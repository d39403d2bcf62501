; The extent of a tensor in memory fits in 64 bits.
;
; RUN: tlx verify %s 2>&1 | count 0

define void @f(ptr %p) {
  %t = call token @llvm.tensor.load(ptr elementtype(float) %p, <3 x i32> <i32 3, i32 4, i32 5>,
      <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> <i32 0, i32 0, i32 0>, <3 x i32> <i32 0, i32 2147483647, i32 8>)
  ret void
}
