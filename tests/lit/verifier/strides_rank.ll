; Strides have one entry for each dimension.
;
; RUN: tlx verify %s 2>&1 | count 0

define void @f(ptr %p) {
  %t = call token @llvm.tensor.load(ptr elementtype(float) %p, <2 x i32> <i32 3, i32 4>,
      <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 8>)
  ret void
}
