; Only a row or a column can be broadcast, without permuting dimensions.
;
; RUN: not tlx-lower %s --target=generic 2>&1 | FileCheck %s --implicit-check-not=error:
; RUN: not tlx-lower %s --target=amx 2>&1 | FileCheck %s --implicit-check-not=error:

define void @f(ptr %c, ptr %a) "tlx-stage"="tiles" {
  %x = call token @llvm.tensor.load(ptr elementtype(i32) %a, <2 x i32> <i32 1, i32 2>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 0>)
; CHECK: broadcast_invalid.ll:[[#@LINE+1]]:3: error: broadcast of this form is not a tile operation
  %v = call <12 x i32> @llvm.tensor.broadcast(token %x, <2 x i32> <i32 2, i32 6>, <2 x i32> <i32 1, i32 0>)
  %y = call token @llvm.tensor.typeinfo(<12 x i32> %v, <2 x i32> <i32 2, i32 6>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
  call void @llvm.tensor.store(ptr %c, token %y, <2 x i32> <i32 0, i32 0>)
  ret void
}
