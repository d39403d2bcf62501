; A kernel with a tile as an argument.
;
; RUN: not tlx-lower %s --target=generic 2>&1 | FileCheck %s --implicit-check-not=error:
; RUN: not tlx-lower %s --target=amx 2>&1 | FileCheck %s --implicit-check-not=error:

; CHECK: argument_invalid.ll:[[#@LINE+1]]:1: error: %v is not the result of a tile operation
define void @f(ptr %c, <8 x float> %v) "tlx-stage"="tiles" {
  %y = call token @llvm.tensor.typeinfo(<8 x float> %v, <2 x i32> <i32 2, i32 4>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
  call void @llvm.tensor.store(ptr %c, token %y, <2 x i32> <i32 0, i32 0>)
  ret void
}
