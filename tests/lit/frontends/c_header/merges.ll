; Phis and selects of tokens.
;
; RUN: grep -v '^;' %s | tlx raise | FileCheck %s
; RUN: grep -v '^;' %s | tlx raise | tlx verify | count 0

; A phi of tokens becomes a phi of vectors; a loaded tensor is read at its load.
; CHECK-LABEL: define <4 x float> @phi(
; CHECK: then:
; CHECK-NEXT: %a = call token @llvm.tensor.typeinfo.v4f32.v1i32(<4 x float> %v,
; CHECK-NEXT: br label %end
; CHECK: else:
; CHECK-NEXT: %b = call token @llvm.tensor.load.p0.v1i32(ptr elementtype(float) %p,
; CHECK-NEXT: [[B:%.*]] = call <4 x float> @llvm.tensor.tovector.v4f32(token %b)
; CHECK-NEXT: br label %end
; CHECK: end:
; CHECK-NEXT: [[M:%.*]] = phi <4 x float> [ %v, %then ], [ [[B]], %else ]
; CHECK-NEXT: %n = phi i32 [ 1, %then ], [ 2, %else ]
; CHECK-NEXT: %t = call token @llvm.tensor.typeinfo.v4f32.v1i32(<4 x float> [[M]], <1 x i32> <i32 4>, <1 x i32> <i32 0>, <1 x i32> <i32 1>)
; CHECK-NEXT: %r = call <4 x float> @llvm.tensor.tovector.v4f32(token %t)
define <4 x float> @phi(i1 %c, <4 x float> %v, ptr %p) {
  br i1 %c, label %then, label %else

then:
  %a = call i32 (...) @tensor_typeinfo(<4 x float> %v, i32 4, i32 0, i32 1)
  br label %end

else:
  %b = call i32 (ptr, ...) @tensor_load_f32(ptr %p, i32 4, i32 0, i32 1, i32 0)
  br label %end

end:
  %t = phi i32 [ %a, %then ], [ %b, %else ]
  %n = phi i32 [ 1, %then ], [ 2, %else ]
  %r = call <4 x float> (i32, ...) @tensor_tovector(i32 %t)
  call void @number(i32 %n)
  ret <4 x float> %r
}

; CHECK-LABEL: define <4 x float> @select(
; CHECK: [[M:%.*]] = select i1 %c, <4 x float> %v, <4 x float> %w
; CHECK-NEXT: %t = call token @llvm.tensor.typeinfo.v4f32.v1i32(<4 x float> [[M]],
define <4 x float> @select(i1 %c, <4 x float> %v, <4 x float> %w) {
  %a = call i32 (...) @tensor_typeinfo(<4 x float> %v, i32 4, i32 0, i32 0)
  %b = call i32 (...) @tensor_typeinfo(<4 x float> %w, i32 4, i32 0, i32 0)
  %t = select i1 %c, i32 %a, i32 %b
  %r = call <4 x float> (i32, ...) @tensor_tovector(i32 %t)
  ret <4 x float> %r
}

; A loop-carried token that reaches other phis.
; CHECK-LABEL: define <4 x float> @loop(
; CHECK: head:
; CHECK-NEXT: [[M:%.*]] = phi <4 x float> [ %v, %entry ], [ [[L:%.*]], %latch ]
; CHECK-NEXT: %t = call token @llvm.tensor.typeinfo.v4f32.v1i32(<4 x float> [[M]],
; CHECK: latch:
; CHECK-NEXT: [[L]] = phi <4 x float> [ [[M]], %head ], [ %r, %body ]
; CHECK-NEXT: %l = call token @llvm.tensor.typeinfo.v4f32.v1i32(<4 x float> [[L]],
; CHECK-NEXT: br i1 %d, label %head, label %end
; CHECK: end:
; CHECK-NEXT: %s = call <4 x float> @llvm.tensor.tovector.v4f32(token %l)
define <4 x float> @loop(i1 %c, i1 %d, <4 x float> %v) {
entry:
  %a = call i32 (...) @tensor_typeinfo(<4 x float> %v, i32 4, i32 0, i32 0)
  br label %head

head:
  %t = phi i32 [ %a, %entry ], [ %l, %latch ]
  br i1 %c, label %body, label %latch

body:
  %r = call <4 x float> (i32, ...) @tensor_tovector(i32 %t)
  %b = call i32 (...) @tensor_typeinfo(<4 x float> %r, i32 4, i32 0, i32 0)
  br label %latch

latch:
  %l = phi i32 [ %t, %head ], [ %b, %body ]
  br i1 %d, label %head, label %end

end:
  %only = phi i32 [ %l, %latch ]
  %s = call <4 x float> (i32, ...) @tensor_tovector(i32 %only)
  ret <4 x float> %s
}

declare void @number(i32)
declare i32 @tensor_typeinfo(...)
declare i32 @tensor_load_f32(ptr, ...)
declare <4 x float> @tensor_tovector(i32, ...)
