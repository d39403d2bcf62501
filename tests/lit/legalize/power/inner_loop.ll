; Two steps of K keep their sums in registers: those of float in the 64 of VSX, those of bytes in the 32 of VMX. Operands
; are loaded ahead of their products, so that few wait.
;
; REQUIRES: clang-19, llvm-filecheck
; RUN: tlx-lower %s -o %t.ll --target=vsx --mcpu=pwr9 --mtriple=powerpc64le-linux-gnu
; RUN: clang-19 --target=powerpc64le-linux-gnu -mcpu=pwr9 -O2 -fPIC -Wno-override-module -S %t.ll -o %t.s
; RUN: %assembly %t.s --mcpu=pwr9 --bound=1.1 | FileCheck %s --implicit-check-not="stack {{[1-9]}}" --implicit-check-not=xxlor
;
; CHECK: xvmaddasp v 88
; CHECK: stack 0

define void @f(ptr noalias %c, ptr %a, ptr %b) {
  %lhs = call token @llvm.tensor.load(ptr elementtype(float) %a, <2 x i32> <i32 256, i32 256>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %rhs = call token @llvm.tensor.load(ptr elementtype(float) %b, <2 x i32> <i32 256, i32 256>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <65536 x float> @llvm.tensor.matmul(token %lhs, token %rhs)
  %t = call token @llvm.tensor.typeinfo(<65536 x float> %m, <2 x i32> <i32 256, i32 256>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}
