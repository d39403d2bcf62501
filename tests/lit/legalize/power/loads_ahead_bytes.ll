; A register that several products of bytes use is loaded, and carried by a phi, once. The loop copies no registers.
;
; REQUIRES: clang-19, llvm-mca-19, llvm-filecheck
; RUN: grep -v '^;' %s | tlx-lower - -o %t.ll --target=vsx --mcpu=pwr10 --mtriple=powerpc64le-linux-gnu --tile=6x12
; RUN: FileCheck %s --check-prefix=IR --input-file=%t.ll
; RUN: clang-19 --target=powerpc64le-linux-gnu -mcpu=pwr10 -O2 -fPIC -Wno-override-module -S %t.ll -o %t.s
; RUN: %assembly %t.s --mcpu=pwr10 --bound=1.42 | FileCheck %s --implicit-check-not="stack {{[1-9]}}"
;
; IR: {{^}}k.loop{{.*}}:
; IR-COUNT-18: phi <4 x i32>
; IR-COUNT-10: phi <16 x i8>
; IR-NOT: phi <16 x i8>
; IR: call <4 x i32> @llvm.ppc.altivec.vmsummbm
; CHECK: lxv v 6
; CHECK-NEXT: lxvwsx v 12
; CHECK-NEXT: vmsummbm v 36

define void @f(ptr noalias %c, ptr %a, ptr %b) {
  %lhs = call token @llvm.tensor.load(ptr elementtype(i8) %a, <2 x i32> <i32 252, i32 256>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %rhs = call token @llvm.tensor.load(ptr elementtype(i8) %b, <2 x i32> <i32 256, i32 252>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <63504 x i32> @llvm.tensor.matmul(token %lhs, token %rhs)
  %t = call token @llvm.tensor.typeinfo(<63504 x i32> %m, <2 x i32> <i32 252, i32 252>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}
