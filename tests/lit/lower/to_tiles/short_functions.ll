; `!tlx.short` on a function of floats, whose result is rounded to bfloat, reaches the kernels: an error of 2^-14 is enough.
;
; RUN: tlx-lower %s -o - --target=avx512 --stop-after=to-2d | FileCheck %s
; RUN: tlx-lower %s -o - --target=avx512 --stop-after=to-tiles | FileCheck %s
; RUN: tlx-lower %s -o /dev/null --target=avx512 --check

; CHECK: call <{{[0-9]+}} x float> @llvm.tensor.exp2.{{[^,]*}}), !tlx.short !{}
; CHECK: call <{{[0-9]+}} x float> @llvm.tensor.sigmoid.{{[^,]*}}){{$}}
define void @f(ptr noalias %y, ptr noalias %z, ptr %x) {
  %t = call token @llvm.tensor.load(ptr elementtype(float) %x, <3 x i32> <i32 2, i32 6, i32 32>, <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> zeroinitializer, <3 x i32> <i32 0, i32 8, i32 40>)
  %p = call <384 x float> @llvm.tensor.exp2(token %t), !tlx.short !{}
  %n = fptrunc <384 x float> %p to <384 x bfloat>
  store <384 x bfloat> %n, ptr %y
  %s = call <384 x float> @llvm.tensor.sigmoid(token %t)
  store <384 x float> %s, ptr %z
  ret void
}
