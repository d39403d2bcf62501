; typeinfo of a pointer needs its element type.
;
; RUN: tlx verify %s 2>&1 | count 0

define void @f(ptr %p) {
  %t = call token @llvm.tensor.typeinfo(ptr elementtype(<12 x float>) %p, <2 x i32> <i32 3, i32 4>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
  ret void
}
