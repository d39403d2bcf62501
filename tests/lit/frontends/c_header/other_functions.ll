; Functions whose names begin with tensor_ but are no placeholders are left alone, and so is code without tensors.
;
; RUN: grep -v '^;' %s | tlx raise | FileCheck %s

; CHECK: %n = call i32 @tensor_count(ptr %p)
; CHECK-NEXT: %t = call token @llvm.tensor.load.p0.v1i32(ptr elementtype(float) %p,
define void @f(ptr %p) {
  %n = call i32 @tensor_count(ptr %p)
  %t = call i32 (ptr, ...) @tensor_load_f32(ptr %p, i32 4, i32 0, i32 0, i32 0)
  call void (ptr, ...) @tensor_store_f32(ptr %p, i32 %t, i32 0)
  ret void
}

; CHECK: define   i32 @g ( i32   %n ) optnone noinline { ret i32 %n }
define   i32 @g ( i32   %n ) optnone noinline { ret i32 %n }

; CHECK: declare i32 @tensor_count(ptr)
declare i32 @tensor_count(ptr)
declare i32 @tensor_load_f32(ptr, ...)
declare void @tensor_store_f32(ptr, ...)
