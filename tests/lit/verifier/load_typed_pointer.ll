; For typed pointers, the message suggests a cast.
;
; RUN: tlx verify %s 2>&1 | count 0

define void @f(float* %p, float* %q) {
  %t = call token @llvm.tensor.load(float* %p, <2 x i32> <i32 3, i32 4>,
      <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 0>)
  call void @llvm.tensor.store(float* %q, token %t, <2 x i32> <i32 0, i32 0>)
  ret void
}
