; A store returns nothing.
;
; RUN: tlx verify %s 2>&1 | count 0

define void @f(<12 x float> %v, ptr %p) {
  %t = call token @llvm.tensor.typeinfo(<12 x float> %v, <2 x i32> <i32 3, i32 4>,
      <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
  call void @llvm.tensor.store(ptr %p, token %t, <2 x i32> <i32 0, i32 0>)
  ret void
}
