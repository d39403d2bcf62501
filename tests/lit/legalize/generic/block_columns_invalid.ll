; Only rows are blocked.
;
; RUN: not tlx-lower %s --target=generic 2>&1 | FileCheck %s --implicit-check-not=error:
; RUN: not tlx-lower %s --target=amx 2>&1 | FileCheck %s --implicit-check-not=error:

define void @f(ptr %c, ptr %a) "tlx-stage"="tiles" {
  %x = call token @llvm.tensor.load(ptr elementtype(bfloat) %a, <2 x i32> <i32 2, i32 8>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 0>)
; CHECK: block_columns_invalid.ll:[[#@LINE+1]]:3: error: reshape.block of a dimension other than rows is not a tile operation
  %v = call <16 x bfloat> @llvm.tensor.reshape.block(token %x, <1 x i32> <i32 1>, <1 x i32> <i32 2>)
  %y = call token @llvm.tensor.typeinfo(<16 x bfloat> %v, <2 x i32> <i32 8, i32 2>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
  call void @llvm.tensor.store(ptr %c, token %y, <2 x i32> <i32 0, i32 0>)
  ret void
}
