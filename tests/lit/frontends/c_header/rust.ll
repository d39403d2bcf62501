; rustc passes tensors as structs of arrays or as bytes, and copies them whole.
;
; RUN: grep -v '^;' %s | tlx raise | FileCheck %s
; RUN: grep -v '^;' %s | tlx raise | tlx verify | count 0

; CHECK-LABEL: define void @bytes(
; CHECK-NEXT: %a = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %x,
; CHECK-NEXT: %result = call <16 x float> @llvm.tensor.matmul.v16f32(token %a, token %a)
; CHECK-NEXT: %t = call token @llvm.tensor.typeinfo.v16f32.v2i32(<16 x float> %result,
; CHECK-NEXT: call void @llvm.tensor.store
; CHECK-NEXT: ret void
define void @bytes(ptr %c, ptr %x) {
  %p = alloca [64 x i8], align 64
  %q = alloca [64 x i8], align 64
  %a = tail call noundef i32 @tensor_load_f32(ptr noundef %x, i64 17179869188, i64 4294967296, i64 0, i64 0)
  call void @tensor_matmul_f32_4x4(ptr noalias noundef nonnull sret([64 x i8]) align 64 dereferenceable(64) %p, i32 noundef %a, i32 noundef %a)
  call void @llvm.memcpy.p0.p0.i64(ptr align 64 %q, ptr align 64 %p, i64 64, i1 false)
  %t = call noundef i32 @tensor_typeinfo_f32(ptr noalias noundef nonnull byval([64 x i8]) align 64 dereferenceable(64) %q, i64 17179869188, i64 4294967296, i64 0)
  call void @tensor_store(ptr noundef %c, i32 noundef %t, i64 0)
  ret void
}

; The struct says the type of its elements. Part of a slot, and a copy to memory that is no slot, stay as they are.
; CHECK-LABEL: define void @named(
; CHECK: %result = call <16 x float> @llvm.tensor.matmul.v16f32(
; CHECK-NEXT: store <16 x float> %result, ptr %p, align 4
; CHECK-NEXT: call void @llvm.memcpy{{.*}}(ptr %q, ptr %p, i64 32, i1 false)
; CHECK-NEXT: %passed = load <16 x float>, ptr %q, align 4
; CHECK: call void @llvm.memcpy{{.*}}(ptr %c, ptr %p, i64 64, i1 false)
define void @named(ptr %c, ptr %x) {
  %p = alloca %Matrix, align 64
  %q = alloca %Matrix, align 64
  %a = call i32 @tensor_load_f32(ptr %x, i64 17179869188, i64 4294967296, i64 0, i64 0)
  call void @tensor_matmul(ptr sret(%Matrix) %p, i32 %a, i32 %a)
  call void @llvm.memcpy.p0.p0.i64(ptr %q, ptr %p, i64 32, i1 false)
  %t = call i32 @tensor_typeinfo(ptr byval(%Matrix) %q, i64 17179869188, i64 4294967296, i64 0)
  call void @tensor_store(ptr %c, i32 %t, i64 0)
  call void @llvm.memcpy.p0.p0.i64(ptr %c, ptr %p, i64 64, i1 false)
  ret void
}

%Matrix = type { [16 x float] }

declare i32 @tensor_load_f32(ptr, i64, i64, i64, i64)
declare void @tensor_matmul_f32_4x4(ptr sret([64 x i8]), i32, i32)
declare void @tensor_matmul(ptr sret(%Matrix), i32, i32)
declare i32 @tensor_typeinfo_f32(ptr byval([64 x i8]), i64, i64, i64)
declare i32 @tensor_typeinfo(ptr byval(%Matrix), i64, i64, i64)
declare void @tensor_store(ptr, i32, i64)
declare void @llvm.memcpy.p0.p0.i64(ptr noalias writeonly, ptr noalias readonly, i64, i1)
