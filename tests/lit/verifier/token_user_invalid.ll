; The token of a tensor is passed to a function that is not a tensor intrinsic.
; RUN: not tlx-lower %s -o - 2>&1 | FileCheck %s

; CHECK: token_user_invalid.ll:[[#@LINE+5]]:38: error: %t is the token of a tensor, which only llvm.tensor.* take, not this call
; CHECK-NEXT:   call void @llvm.tensormatmul(token %t)
; CHECK-NEXT:                                      ^~
define void @f(<4 x float> %v) {
  %t = call token @llvm.tensor.typeinfo(<4 x float> %v, <1 x i32> <i32 4>, <1 x i32> zeroinitializer, <1 x i32> zeroinitializer)
  call void @llvm.tensormatmul(token %t)
  ret void
}

declare void @llvm.tensormatmul(token)
