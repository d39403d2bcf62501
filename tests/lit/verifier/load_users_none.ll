; The element type of an opaque pointer comes from an attribute or from a user of the token.
;
; RUN: tlx verify %s 2>&1 | count 0

define void @f(ptr %p, ptr %q) {
  %t = call token @llvm.tensor.load(ptr elementtype(float) %p, <2 x i32> <i32 3, i32 4>,
      <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 0>)
  call void @llvm.tensor.store(ptr %q, token %t, <2 x i32> <i32 0, i32 0>)
  ret void
}
