; With --bf16-intermediates=float a difference by rounding is a note of --check, not an error; without it, nothing is.
;
; RUN: tlx-lower --check --target=avx512 --bf16-intermediates=float %s -o /dev/null 2>&1 | FileCheck %s
; RUN: tlx-lower --check --target=avx512 %s -o /dev/null 2>&1 | count 0

; CHECK: note: @f was not checked after to-tiles: its intermediate results are not rounded to bfloat: element
; CHECK-NOT: error
; CHECK-NOT: legalize

define void @f(ptr noalias %a, ptr noalias %c) {
  %t = call token @llvm.tensor.load(ptr elementtype(bfloat) %a, <2 x i32> <i32 4, i32 10>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %x = call <40 x bfloat> @llvm.tensor.tovector(token %t)
  %y = fadd <40 x bfloat> %x, splat (bfloat 0xR4489)
  %z = fsub <40 x bfloat> %y, splat (bfloat 0xR4488)
  %w = fdiv <40 x bfloat> %z, splat (bfloat 0xR4488)
  %u = call token @llvm.tensor.typeinfo(<40 x bfloat> %w, <2 x i32> <i32 4, i32 10>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %u, <2 x i32> zeroinitializer)
  ret void
}
