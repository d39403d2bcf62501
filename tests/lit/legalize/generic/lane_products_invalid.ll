; Windows must be adjacent within rows.
;
; RUN: not tlx-lower %s --target=generic 2>&1 | FileCheck %s --implicit-check-not=error:

define void @f(ptr %c, ptr %a) "tlx-stage"="tiles" {
  %x = call token @llvm.tensor.load(ptr elementtype(float) %a, <2 x i32> <i32 2, i32 8>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 0>)
; CHECK: lane_products_invalid.ll:[[#@LINE+1]]:3: error: llvm.tensor.reduce.add of this form is not a tile operation
  %v = call <8 x float> @llvm.tensor.reduce.add(token %x, <2 x i32> <i32 2, i32 1>, <2 x i32> <i32 2, i32 1>)
  %y = call token @llvm.tensor.typeinfo(<8 x float> %v, <2 x i32> <i32 1, i32 8>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
  call void @llvm.tensor.store(ptr %c, token %y, <2 x i32> <i32 0, i32 0>)
  ret void
}
