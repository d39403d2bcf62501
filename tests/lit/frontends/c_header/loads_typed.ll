; The type of a typed pointer suffices, except i8*, which is also C's void *.
;
; RUN: grep -v '^;' %s | tlx raise | FileCheck %s
; RUN: grep -v '^;' %s | tlx raise | tlx verify | count 0

; CHECK-LABEL: define void @f(
define void @f(float* %p, i8* %q) {
; CHECK-NEXT: %a = call token @llvm.tensor.load.p0f32.v1i32(float* %p, <1 x i32> <i32 4>,
  %a = call i32 (float*, ...) @tensor_load_f32(float* %p, i32 4, i32 0, i32 0, i32 0)
; CHECK-NEXT: call void @llvm.tensor.store.p0i8.v1i32(i8* elementtype(float) %q, token %a,
  call void (i8*, ...) @tensor_store_f32(i8* %q, i32 %a, i32 0)
; CHECK-NEXT: %b = call token @llvm.tensor.load.p0i8.v1i32(i8* elementtype(i8) %q,
  %b = call i32 (i8*, ...) @tensor_load_i8(i8* %q, i32 4, i32 0, i32 0, i32 0)
; CHECK-NEXT: call void @llvm.tensor.store.p0i8.v1i32(i8* %q, token %b,
  call void (i8*, ...) @tensor_store(i8* %q, i32 %b, i32 0)
; CHECK-NEXT: ret void
  ret void
}

declare i32 @tensor_load_f32(float*, ...)
declare i32 @tensor_load_i8(i8*, ...)
declare void @tensor_store(i8*, ...)
declare void @tensor_store_f32(i8*, ...)
