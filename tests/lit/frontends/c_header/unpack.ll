; The SLP vectoriser packs tokens into vectors beside numbers; they are unpacked.
;
; RUN: grep -v '^;' %s | tlx raise | FileCheck %s
; RUN: grep -v '^;' %s | tlx raise | tlx verify | count 0

; CHECK-LABEL: define i32 @f(
; CHECK: entry:
; CHECK-NEXT: %t = call token @llvm.tensor.typeinfo.v4f32.v1i32(<4 x float> %v,
; CHECK-NEXT: %v.1 = insertelement <2 x i32> undef, i32 %n, i64 0
; CHECK-NEXT: %v.2 = insertelement <2 x i32> %v.1, i32 undef, i64 1
; CHECK: then:
; CHECK-NEXT: %u = call token @llvm.tensor.typeinfo.v4f32.v1i32(<4 x float> %w,
; CHECK-NEXT: %v.3 = insertelement <2 x i32> <i32 7, i32 undef>, i32 undef, i64 1
; CHECK: end:
; CHECK-NEXT: [[M:%.*]] = phi <4 x float> [ %v, %entry ], [ %w, %then ]
; CHECK-NEXT: %v.4 = phi <2 x i32> [ %v.2, %entry ], [ %v.3, %then ]
; CHECK-NEXT: [[T:%.*]] = call token @llvm.tensor.typeinfo.v4f32.v1i32(<4 x float> [[M]],
; CHECK-NEXT: %reversed = shufflevector <2 x i32> %v.4, <2 x i32> undef, <2 x i32> <i32 1, i32 0>
; CHECK-NEXT: %r = call <4 x float> @llvm.tensor.tovector.v4f32(token [[T]])
; CHECK-NEXT: store <4 x float> %r, ptr %p
; CHECK-NEXT: %number = extractelement <2 x i32> %reversed, i64 1
; CHECK-NEXT: ret i32 %number
define i32 @f(i1 %c, i32 %n, <4 x float> %v, <4 x float> %w, ptr %p) {
entry:
  %t = call i32 (...) @tensor_typeinfo(<4 x float> %v, i32 4, i32 0, i32 0)
  %v.1 = insertelement <2 x i32> undef, i32 %n, i64 0
  %v.2 = insertelement <2 x i32> %v.1, i32 %t, i64 1
  br i1 %c, label %then, label %end

then:
  %u = call i32 (...) @tensor_typeinfo(<4 x float> %w, i32 4, i32 0, i32 0)
  %v.3 = insertelement <2 x i32> <i32 7, i32 undef>, i32 %u, i64 1
  br label %end

end:
  %v.4 = phi <2 x i32> [ %v.2, %entry ], [ %v.3, %then ]
  %reversed = shufflevector <2 x i32> %v.4, <2 x i32> undef, <2 x i32> <i32 1, i32 0>
  %token = extractelement <2 x i32> %reversed, i64 0
  %r = call <4 x float> (i32, ...) @tensor_tovector(i32 %token)
  store <4 x float> %r, ptr %p
  %number = extractelement <2 x i32> %reversed, i64 1
  ret i32 %number
}

declare i32 @tensor_typeinfo(...)
declare <4 x float> @tensor_tovector(i32, ...)
