; A constant whose elements are not written out.
;
; RUN: not tlx-lower %s --target=generic 2>&1 | FileCheck %s --implicit-check-not=error:
; RUN: not tlx-lower %s --target=amx 2>&1 | FileCheck %s --implicit-check-not=error:

; CHECK: constant_invalid.ll:[[#@LINE+1]]:1: error: bitcast (<8 x i32> <i32 1, {{.*}}> to <8 x float>) is not the result of a tile operation
define void @f(ptr %c, ptr %a) "tlx-stage"="tiles" {
  %x = call token @llvm.tensor.load(ptr elementtype(float) %a, <2 x i32> <i32 2, i32 4>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 0>)
  %v = call <8 x float> @llvm.tensor.tovector(token %x)
  %w = fadd <8 x float> %v, bitcast (<8 x i32> <i32 1, i32 1, i32 1, i32 1, i32 1, i32 1, i32 1, i32 1> to <8 x float>)
  %y = call token @llvm.tensor.typeinfo(<8 x float> %w, <2 x i32> <i32 2, i32 4>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
  call void @llvm.tensor.store(ptr %c, token %y, <2 x i32> <i32 0, i32 0>)
  ret void
}
