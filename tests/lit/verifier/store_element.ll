; A typed pointer takes elements of its type.
;
; RUN: tlx verify %s 2>&1 | count 0

define void @f(<12 x i32> %v, ptr %q) {
  %t = call token @llvm.tensor.typeinfo(<12 x i32> %v, <2 x i32> <i32 3, i32 4>,
      <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
  call void @llvm.tensor.store(ptr elementtype(i32) %q, token %t, <2 x i32> <i32 0, i32 4>)
  ret void
}
