; Two products whose epilogues differ in a constant share a kernel that takes it; constants that are the same stay in it,
; and divisors do.
;
; RUN: grep -v '^;' %s | tlx-lower - -o - --target=avx512 --stop-after=to-tiles | FileCheck %s
; RUN: tlx-lower %s -o /dev/null --target=avx512 --check

; CHECK-LABEL: define void @addends(
; CHECK:         call void @[[K:tlx.matmul.6x16x20[^(]*]](ptr %c, ptr %x, ptr %y, float {{1.5|0x3FF8[0-9A-F]*}})
; CHECK:         call void @[[K]](ptr %d, ptr %x, ptr %y, float {{2.5|0x4004[0-9A-F]*}})
; CHECK-LABEL: define void @divisors(
; CHECK:         call void @tlx.matmul.6x16x20{{[^(]*}}(ptr %c, ptr %x, ptr %y)
; CHECK:         call void @tlx.matmul.6x16x20{{[^(]*}}(ptr %d, ptr %x, ptr %y)
; CHECK:       define internal void @[[K]]({{.*}}, float %{{[^,]*}})
; CHECK:         fmul <16 x float> %{{.*}}, <float {{3|0x4008}}

define void @addends(ptr noalias %x, ptr noalias %y, ptr noalias %c, ptr noalias %d) {
  %a = call token @llvm.tensor.load(ptr elementtype(float) %x, <2 x i32> <i32 6, i32 20>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %b = call token @llvm.tensor.load(ptr elementtype(float) %y, <2 x i32> <i32 20, i32 16>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m0 = call <96 x float> @llvm.tensor.matmul(token %a, token %b)
  %p0 = fmul <96 x float> %m0, splat (float 3.0)
  %s0 = fadd <96 x float> %p0, splat (float 1.5)
  %t0 = call token @llvm.tensor.typeinfo(<96 x float> %s0, <2 x i32> <i32 6, i32 16>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t0, <2 x i32> zeroinitializer)
  %m1 = call <96 x float> @llvm.tensor.matmul(token %a, token %b)
  %p1 = fmul <96 x float> %m1, splat (float 3.0)
  %s1 = fadd <96 x float> %p1, splat (float 2.5)
  %t1 = call token @llvm.tensor.typeinfo(<96 x float> %s1, <2 x i32> <i32 6, i32 16>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %d, token %t1, <2 x i32> zeroinitializer)
  ret void
}

define void @divisors(ptr noalias %x, ptr noalias %y, ptr noalias %c, ptr noalias %d) {
  %a = call token @llvm.tensor.load(ptr elementtype(float) %x, <2 x i32> <i32 6, i32 20>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %b = call token @llvm.tensor.load(ptr elementtype(float) %y, <2 x i32> <i32 20, i32 16>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m0 = call <96 x float> @llvm.tensor.matmul(token %a, token %b)
  %s0 = fdiv <96 x float> %m0, splat (float 2.0)
  %t0 = call token @llvm.tensor.typeinfo(<96 x float> %s0, <2 x i32> <i32 6, i32 16>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t0, <2 x i32> zeroinitializer)
  %m1 = call <96 x float> @llvm.tensor.matmul(token %a, token %b)
  %s1 = fdiv <96 x float> %m1, splat (float 4.0)
  %t1 = call token @llvm.tensor.typeinfo(<96 x float> %s1, <2 x i32> <i32 6, i32 16>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %d, token %t1, <2 x i32> zeroinitializer)
  ret void
}
