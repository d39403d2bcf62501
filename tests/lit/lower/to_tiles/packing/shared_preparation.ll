; A preparation packs constant arrays of different numbers of rows by one kernel, which takes these numbers.
;
; RUN: tlx-lower %s --target=avx512 --stop-after=to-tiles | FileCheck %s
; RUN: tlx-lower %s --target=avx512 --check -o /dev/null

; CHECK-LABEL: {{^}}define void @f(
; CHECK: {{^}}define internal void @[[PACK:tlx[a-z0-9.]+.pack]](ptr noalias %panels, ptr %b, i64 %n
; CHECK-NOT: {{^}}define {{.*}}.pack(
; CHECK-LABEL: {{^}}define void @f.prepare(
; CHECK: {{^}}  call void @[[PACK]](ptr %t, ptr %v, i64 192
; CHECK: {{^}}  call void @[[PACK]](ptr %t.1, ptr %w, i64 96
define void @f(ptr noalias %c, ptr noalias %d, ptr noalias %a, ptr "tlx-constant" %v, ptr "tlx-constant" %w) {
  %1 = call token @llvm.tensor.load(ptr elementtype(float) %a, <2 x i32> <i32 96, i32 192>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %2 = call token @llvm.tensor.load(ptr elementtype(float) %v, <2 x i32> <i32 192, i32 512>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %3 = call <49152 x float> @llvm.tensor.matmul(token %1, token %2)
  %4 = call token @llvm.tensor.typeinfo(<49152 x float> %3, <2 x i32> <i32 96, i32 512>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %4, <2 x i32> zeroinitializer)
  %5 = call token @llvm.tensor.load(ptr elementtype(float) %a, <2 x i32> <i32 96, i32 96>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %6 = call token @llvm.tensor.load(ptr elementtype(float) %w, <2 x i32> <i32 96, i32 512>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %7 = call <49152 x float> @llvm.tensor.matmul(token %5, token %6)
  %8 = call token @llvm.tensor.typeinfo(<49152 x float> %7, <2 x i32> <i32 96, i32 512>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %d, token %8, <2 x i32> zeroinitializer)
  ret void
}
