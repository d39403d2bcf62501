; Tensors and results that are passed in memory.
;
; RUN: grep -v '^;' %s | tlx raise | FileCheck %s
; RUN: grep -v '^;' %s | tlx raise | tlx verify | count 0

; A temporary dies or is reused before the token is used: the tensor is the value at the call.
; CHECK-LABEL: define void @temporary(
define void @temporary(ptr %p, ptr %q) {
; CHECK-NEXT: %v = load <16 x float>, ptr %p, align 4
; CHECK-NEXT: %t = call token @llvm.tensor.typeinfo.v16f32.v2i32(<16 x float> %v,
; CHECK-NEXT: %w = load <16 x float>, ptr %q, align 4
; CHECK-NEXT: %u = call token @llvm.tensor.typeinfo.v16f32.v2i32(<16 x float> %w,
; CHECK-NEXT: %r = call <16 x float> @llvm.tensor.matmul.v16f32(token %t, token %u)
; CHECK-NEXT: store <16 x float> %r, ptr %p, align 4
; CHECK-NEXT: ret void
  %slot = alloca <16 x float>, align 64
  %v = load <16 x float>, ptr %p, align 4
  call void @llvm.lifetime.start.p0(i64 64, ptr nonnull %slot)
  store <16 x float> %v, ptr %slot, align 64
  %t = tail call i32 (...) @tensor_typeinfo(ptr noundef nonnull byval(<16 x float>) align 64 %slot, double 0x400000004, double 0x100000000, double 0.000000e+00) #0
  %w = load <16 x float>, ptr %q, align 4
  store <16 x float> %w, ptr %slot, align 64
  %u = tail call i32 (...) @tensor_typeinfo(ptr noundef nonnull byval(<16 x float>) align 64 %slot, double 0x400000004, double 0x100000000, double 0.000000e+00) #0
  call void @llvm.lifetime.end.p0(i64 64, ptr nonnull %slot)
  %r = tail call <16 x float> (i32, ...) @tensor_matmul(i32 noundef %t, i32 noundef %u) #0
  store <16 x float> %r, ptr %p, align 4
  ret void
}

; A parameter that is never written is read in place; one that is written is loaded at the call.
; CHECK-LABEL: define void @parameters(
define void @parameters(ptr byval(<16 x float>) align 64 %a, ptr byval(<16 x float>) align 64 %b) {
; CHECK-NEXT: %t = call token @llvm.tensor.typeinfo.p0.v2i32(ptr byval(<16 x float>) %a,
  %t = call i32 (...) @tensor_typeinfo(ptr byval(<16 x float>) align 64 %a, double 0x400000004, double 0x100000000, double 0.000000e+00)
; CHECK-NEXT: [[B:%.*]] = load <16 x float>, ptr %b, align 64
; CHECK-NEXT: %u = call token @llvm.tensor.typeinfo.v16f32.v2i32(<16 x float> [[B]],
  %u = call i32 (...) @tensor_typeinfo(ptr byval(<16 x float>) align 64 %b, double 0x400000004, double 0x100000000, double 0.000000e+00)
; CHECK-NEXT: %r = call <16 x float> @llvm.tensor.matmul.v16f32(token %t, token %u)
  %r = call <16 x float> (i32, ...) @tensor_matmul(i32 %t, i32 %u)
; CHECK-NEXT: store <16 x float> %r, ptr %b
  store <16 x float> %r, ptr %b
  ret void
}

; A result in memory, and a tensor passed by a plain pointer, as on AArch64.
; CHECK-LABEL: define void @indirect(
define void @indirect(ptr sret(<16 x float>) align 16 %result, <16 x float> %v) {
; CHECK-NEXT: %t = call token @llvm.tensor.typeinfo.v16f32.v2i32(<16 x float> %v,
  %slot = alloca <16 x float>, align 16
  store <16 x float> %v, ptr %slot
  %t = call i32 (...) @tensor_typeinfo(ptr %slot, <2 x i32> <i32 4, i32 4>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
; CHECK-NEXT: [[R:%.*]] = call <16 x float> @llvm.tensor.matmul.v16f32(token %t, token %t)
; CHECK-NEXT: store <16 x float> [[R]], ptr %result, align 16
  call void @tensor_matmul_too(ptr sret(<16 x float>) align 16 %result, i32 %t, i32 %t)
; CHECK-NEXT: ret void
  ret void
}

declare void @llvm.lifetime.start.p0(i64, ptr)
declare void @llvm.lifetime.end.p0(i64, ptr)
declare i32 @tensor_typeinfo(...)
declare <16 x float> @tensor_matmul(i32, ...)
declare void @tensor_matmul_too(ptr, i32, i32)

attributes #0 = { convergent nomerge nounwind }
