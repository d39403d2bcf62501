; A shuffle across the rows of a tile.
;
; RUN: not tlx-lower %s --target=generic 2>&1 | FileCheck %s --implicit-check-not=error:
; RUN: not tlx-lower %s --target=amx 2>&1 | FileCheck %s --implicit-check-not=error:

define void @f(ptr %c, ptr %a) "tlx-stage"="tiles" {
  %x = call token @llvm.tensor.load(ptr elementtype(float) %a, <2 x i32> <i32 2, i32 16>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 0>)
  %v = call <32 x float> @llvm.tensor.tovector(token %x)
; CHECK: shuffle_invalid.ll:[[#@LINE+1]]:3: error: shufflevector of this form is not a tile operation
  %w = shufflevector <32 x float> %v, <32 x float> %v, <32 x i32> <i32 7, i32 6, i32 5, i32 4, i32 3, i32 2, i32 1, i32 0, i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15, i32 16, i32 17, i32 18, i32 19, i32 20, i32 21, i32 22, i32 23, i32 24, i32 25, i32 26, i32 27, i32 28, i32 29, i32 30, i32 31>
  %y = call token @llvm.tensor.typeinfo(<32 x float> %w, <2 x i32> <i32 2, i32 16>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
  call void @llvm.tensor.store(ptr %c, token %y, <2 x i32> <i32 0, i32 0>)
  ret void
}
