; A column-major B is packed 16 bytes of each column at a time: 48 insertions from memory and 32 shuffles for 16 by 16, and
; nothing is spilled in between.
;
; REQUIRES: clang-19, host-x86_64
; RUN: tlx-lower %s -o %t.ll --target=avx512
; RUN: clang-19 -O2 -fPIC -Wno-override-module -S %t.ll -o %t.s
; RUN: grep "vinsertf32x4.*(%%r" %t.s | count 48
; RUN: grep "vunpck[lh]ps" %t.s | count 32
; RUN: not grep -e vperm -e Spill %t.s

define void @f(ptr noalias %c, ptr %a, ptr %b) {
  %x = call token @llvm.tensor.load(ptr elementtype(float) %a, <2 x i32> <i32 64, i32 64>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %y = call token @llvm.tensor.load(ptr elementtype(float) %b, <2 x i32> <i32 64, i32 64>, <2 x i32> <i32 1, i32 0>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %p = call <4096 x float> @llvm.tensor.matmul(token %x, token %y)
  %t = call token @llvm.tensor.typeinfo(<4096 x float> %p, <2 x i32> <i32 64, i32 64>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}
