; Shapes are passed as double, i64, i32, vectors, and in memory; constant shapes stay constant.
;
; RUN: grep -v '^;' %s | tlx raise | FileCheck %s
; RUN: grep -v '^;' %s | tlx raise | tlx verify | count 0

@constant = internal constant <2 x i32> <i32 2, i32 8>
@five = private constant <5 x i32> <i32 1, i32 1, i32 2, i32 2, i32 4>

; CHECK-LABEL: @constants(
define void @constants(<16 x float> %v, ptr %p) {
; CHECK-NEXT: %a = call token @llvm.tensor.typeinfo.v16f32.v2i32(<16 x float> %v, <2 x i32> <i32 2, i32 8>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
  %a = call i32 (...) @tensor_typeinfo(<16 x float> %v, double 0x800000002, double 0x100000000, double 0.000000e+00)
; CHECK-NEXT: %b = call token @llvm.tensor.typeinfo.v16f32.v2i32(<16 x float> %v, <2 x i32> <i32 2, i32 8>, <2 x i32> <i32 1, i32 0>, <2 x i32> <i32 0, i32 1>)
  %b = call i32 (...) @tensor_typeinfo(<16 x float> %v, i64 34359738370, i64 1, i64 4294967296)
; CHECK-NEXT: %c = call token @llvm.tensor.typeinfo.v16f32.v1i32(<16 x float> %v, <1 x i32> <i32 16>, <1 x i32> <i32 0>, <1 x i32> <i32 3>)
  %c = call i32 (...) @tensor_typeinfo(<16 x float> %v, i32 16, i32 0, i32 3)
; CHECK-NEXT: %d = call token @llvm.tensor.typeinfo.v16f32.v3i32(<16 x float> %v, <3 x i32> <i32 2, i32 2, i32 4>, <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> zeroinitializer)
  %d = call i32 (...) @tensor_typeinfo(<16 x float> %v, <3 x i32> <i32 2, i32 2, i32 4>, <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> zeroinitializer)
; CHECK-NEXT: ret void
  ret void
}

; CHECK-LABEL: @computed(
define void @computed(<16 x float> %v, ptr byval(<5 x i32>) align 32 %in_memory) {
; CHECK-NEXT: %b = call token @llvm.tensor.typeinfo.v16f32.v2i32(<16 x float> %v, <2 x i32> <i32 4, i32 4>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
  %s = insertelement <2 x i32> <i32 4, i32 undef>, i32 4, i32 1
  %d = bitcast <2 x i32> %s to double
  %b = call i32 (...) @tensor_typeinfo(<16 x float> %v, double %d, double 0x100000000, double 0.000000e+00)
; CHECK-NEXT: %f = call token @llvm.tensor.typeinfo.v16f32.v2i32(<16 x float> %v, <2 x i32> <i32 2, i32 8>,
  %e = load double, ptr @constant
  %f = call i32 (...) @tensor_typeinfo(<16 x float> %v, double %e, double 0x100000000, double 0.000000e+00)
; CHECK-NEXT: %g = call token @llvm.tensor.typeinfo.v16f32.v5i32(<16 x float> %v, <5 x i32> <i32 1, i32 1, i32 2, i32 2, i32 4>, <5 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4>, <5 x i32> zeroinitializer)
  %g = call i32 (...) @tensor_typeinfo(<16 x float> %v, ptr byval(<5 x i32>) align 32 @five, <5 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4>, <5 x i32> zeroinitializer)
; CHECK-NEXT: ret void
  ret void
}

declare i32 @tensor_typeinfo(...)
