; The name of a load or store determines the element type; otherwise, the token's users do.
;
; RUN: grep -v '^;' %s | tlx raise | FileCheck %s
; RUN: grep -v '^;' %s | tlx raise | tlx verify | count 0

; CHECK-LABEL: define void @f(
define void @f(ptr %p, ptr %q, <16 x float> %v) {
; CHECK-NEXT: %a = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(i8) %p, <2 x i32> <i32 4, i32 4>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 8>)
  %a = call i32 (ptr, ...) @tensor_load_i8(ptr noundef %p, double 0x400000004, double 0x100000000, double 0.000000e+00, double 0x800000000)
; CHECK-NEXT: call void @llvm.tensor.store.p0.v2i32(ptr elementtype(i8) %q, token %a, <2 x i32> <i32 0, i32 0>)
  call void (ptr, ...) @tensor_store_i8(ptr %q, i32 %a, double 0.000000e+00)
; CHECK-NEXT: %b = call token @llvm.tensor.load.p0.v2i32(ptr %p,
  %b = call i32 (ptr, ...) @tensor_load(ptr %p, double 0x400000004, double 0x100000000, double 0.000000e+00, double 0.000000e+00)
; CHECK-NEXT: %c = call <16 x float> @llvm.tensor.tovector.v16f32(token %b)
  %c = call <16 x float> (i32, ...) @tensor_tovector(i32 %b)
; The other order of operands, and one dimension: two ints, one of which is a token.
; CHECK-NEXT: %d = call token @llvm.tensor.typeinfo.v16f32.v1i32(<16 x float> %c,
  %d = call i32 (...) @tensor_typeinfo(<16 x float> %c, i32 16, i32 0, i32 0)
; CHECK-NEXT: call void @llvm.tensor.store.p0.v1i32(ptr %q, token %d, <1 x i32> <i32 0>)
  call void (ptr, ...) @tensor_store(ptr %q, i32 0, i32 %d)
; CHECK-NEXT: ret void
  ret void
}

declare i32 @tensor_typeinfo(...)
declare i32 @tensor_load(ptr, ...)
declare i32 @tensor_load_i8(ptr, ...)
declare void @tensor_store(ptr, ...)
declare void @tensor_store_i8(ptr, ...)
declare <16 x float> @tensor_tovector(i32, ...)
