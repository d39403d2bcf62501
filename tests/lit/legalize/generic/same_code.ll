; With the features of a host, a product of float is the same as on the host's own target, instruction by instruction,
; including masks at the edges and last columns that are summed along K.
;
; REQUIRES: llvm-19, host-x86_64
; RUN: grep -v '^;' %s | tlx-lower - -o %t.ll --target=avx512
; RUN: llc-19 -O3 %t.ll -o - | grep -P '^\t[a-z]' > %t.avx512
; RUN: grep -v '^;' %s | tlx-lower - -o %t.ll --target=generic+avx512f+avx512bw+avx512dq+avx512vl
; RUN: llc-19 -O3 %t.ll -o - | grep -P '^\t[a-z]' > %t.generic
; RUN: diff %t.avx512 %t.generic
; RUN: grep -v '^;' %s | tlx-lower - -o %t.ll --target=avx2
; RUN: llc-19 -O3 %t.ll -o - | grep -P '^\t[a-z]' > %t.avx2
; RUN: grep -v '^;' %s | tlx-lower - -o %t.ll --target=generic+avx2+fma
; RUN: llc-19 -O3 %t.ll -o - | grep -P '^\t[a-z]' > %t.generic
; RUN: diff %t.avx2 %t.generic
; RUN: FileCheck %s --input-file=%t.generic

; CHECK: vfmadd231ps {{.*}}ymm

define void @f(ptr noalias %c, ptr noalias %a, ptr noalias %b) {
  %x = call token @llvm.tensor.load(ptr elementtype(float) %a, <2 x i32> <i32 31, i32 35>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %y = call token @llvm.tensor.load(ptr elementtype(float) %b, <2 x i32> <i32 35, i32 53>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <1643 x float> @llvm.tensor.matmul(token %x, token %y)
  %t = call token @llvm.tensor.typeinfo(<1643 x float> %m, <2 x i32> <i32 31, i32 53>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}

define void @g(ptr noalias %c, ptr noalias %a, ptr noalias %b) {
  %x = call token @llvm.tensor.load(ptr elementtype(float) %a, <2 x i32> <i32 31, i32 35>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %y = call token @llvm.tensor.load(ptr elementtype(float) %b, <2 x i32> <i32 35, i32 33>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <1023 x float> @llvm.tensor.matmul(token %x, token %y)
  %t = call token @llvm.tensor.typeinfo(<1023 x float> %m, <2 x i32> <i32 31, i32 33>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}
