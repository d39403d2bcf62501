; Last columns that are summed along K are vector code on any machine: nothing is scalarised, and fma is not called.
;
; REQUIRES: llvm-19
; RUN: grep -v '^;' %s | tlx-lower - --target=generic --mtriple=x86_64-linux-gnu --remarks -o %t.ll 2>&1 | FileCheck %s --check-prefix=REMARK
; RUN: FileCheck %s --input-file=%t.ll
; RUN: llc-19 -relocation-model=pic -filetype=obj %t.ll -o %t.o
; RUN: %python %S/../Inputs/undefined.py %t.o | count 0
; RUN: grep -v '^;' %s | tlx-lower - --target=generic --mcpu=skylake-avx512 -o %t.ll
; RUN: llc-19 -O3 -relocation-model=pic %t.ll -o %t.s
; RUN: %assembly %t.s | FileCheck %s --check-prefix=HOST

; REMARK: remark: matmul 31x33x35 double: {{.*}}; the last column is summed along K
; CHECK:      kd.loop:
; CHECK:        = call <2 x double> @llvm.fmuladd.v2f64(
; CHECK-NOT:    extractelement
; CHECK:      kd.end:
; HOST: tlx.matmul.31x33x35.f64.f64.f64: calls nothing
; HOST: vfmadd231pd zmm
define void @f(ptr noalias %c, ptr %a, ptr %b) {
  %x = call token @llvm.tensor.load(ptr elementtype(double) %a, <2 x i32> <i32 31, i32 35>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %y = call token @llvm.tensor.load(ptr elementtype(double) %b, <2 x i32> <i32 35, i32 33>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <1023 x double> @llvm.tensor.matmul(token %x, token %y)
  %t = call token @llvm.tensor.typeinfo(<1023 x double> %m, <2 x i32> <i32 31, i32 33>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}
