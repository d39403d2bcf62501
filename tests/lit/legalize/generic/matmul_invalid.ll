; A whole product is not a tile operation.
;
; RUN: not tlx-lower %s --target=generic 2>&1 | FileCheck %s --implicit-check-not=error:
; RUN: not tlx-lower %s --target=amx 2>&1 | FileCheck %s --implicit-check-not=error:

define void @f(ptr %c, ptr %a, ptr %b) "tlx-stage"="tiles" {
  %l = call token @llvm.tensor.load(ptr elementtype(float) %a, <2 x i32> <i32 2, i32 6>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 0>)
  %r = call token @llvm.tensor.load(ptr elementtype(float) %b, <2 x i32> <i32 6, i32 2>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 0>)
; CHECK: matmul_invalid.ll:[[#@LINE+1]]:3: error: llvm.tensor.matmul is not a tile operation
  %v = call <4 x float> @llvm.tensor.matmul(token %l, token %r)
  %y = call token @llvm.tensor.typeinfo(<4 x float> %v, <2 x i32> <i32 2, i32 2>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
  call void @llvm.tensor.store(ptr %c, token %y, <2 x i32> <i32 0, i32 0>)
  ret void
}
