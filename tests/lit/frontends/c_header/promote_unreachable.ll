; In unreachable code, a value may be stored before it is loaded from the same slot.
;
; RUN: tlx raise %s | FileCheck %s
; RUN: tlx raise %s | tlx verify | count 0

; CHECK-LABEL: define void @f(
; CHECK: dead:
; CHECK-NEXT: %t = call token @llvm.tensor.typeinfo.v4f32.v2i32(<4 x float> undef,
define void @f(ptr %p) {
  %slot = alloca <4 x float>, align 16
  ret void
dead:
  store <4 x float> %v, ptr %slot, align 16
  %v = load <4 x float>, ptr %slot, align 16
  %t = call i32 (...) @tensor_typeinfo(<4 x float> %v, i64 8589934594, i64 4294967296, i64 0)
  call void (ptr, i32, ...) @tensor_store(ptr %p, i32 %t, i64 0)
  br label %dead
}

declare i32 @tensor_typeinfo(...)
declare void @tensor_store(ptr, i32, ...)
