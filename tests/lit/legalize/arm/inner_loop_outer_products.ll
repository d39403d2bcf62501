; A step of K multiplies in the four tiles of ZA, without spills. LLVM has no model of a processor with SME.
;
; REQUIRES: clang-19, llvm-filecheck
; RUN: sed 's/ELEMENT/float/g; s/SUM/float/g' %s | tlx-lower - -o %t.ll --target=sme512 --mtriple=aarch64-linux-gnu
; RUN: clang-19 --target=aarch64-linux-gnu -O2 -fPIC -Wno-override-module -S %t.ll -o %t.s
; RUN: %assembly %t.s | FileCheck %s --check-prefix=FLOAT --implicit-check-not="stack {{[1-9]}}"
; RUN: sed 's/ELEMENT/bfloat/g; s/SUM/float/g' %s | tlx-lower - -o %t.ll --target=sme512 --mtriple=aarch64-linux-gnu
; RUN: clang-19 --target=aarch64-linux-gnu -O2 -fPIC -Wno-override-module -S %t.ll -o %t.s
; RUN: %assembly %t.s | FileCheck %s --check-prefix=BFLOAT --implicit-check-not="stack {{[1-9]}}"
; RUN: sed 's/ELEMENT/i8/g; s/SUM/i32/g' %s | tlx-lower - -o %t.ll --target=sme512 --mtriple=aarch64-linux-gnu
; RUN: clang-19 --target=aarch64-linux-gnu -O2 -fPIC -Wno-override-module -S %t.ll -o %t.s
; RUN: %assembly %t.s | FileCheck %s --check-prefix=BYTES --implicit-check-not="stack {{[1-9]}}"
;
; FLOAT: ld1w z 16
; FLOAT-NEXT: fmopa z 16
; BFLOAT: ld1w z 16
; BFLOAT-NEXT: bfmopa z 16
; BYTES: ld1b z 16
; BYTES-NEXT: smopa z 16

define void @f(ptr noalias %c, ptr %a, ptr %b) {
  %lhs = call token @llvm.tensor.load(ptr elementtype(ELEMENT) %a, <2 x i32> <i32 256, i32 256>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %rhs = call token @llvm.tensor.load(ptr elementtype(ELEMENT) %b, <2 x i32> <i32 256, i32 256>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <65536 x SUM> @llvm.tensor.matmul(token %lhs, token %rhs)
  %t = call token @llvm.tensor.typeinfo(<65536 x SUM> %m, <2 x i32> <i32 256, i32 256>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}
