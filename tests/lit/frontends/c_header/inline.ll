; Helper functions that take or return tokens are inlined, others are not.
;
; RUN: grep -v '^;' %s | tlx raise | FileCheck %s
; RUN: grep -v '^;' %s | tlx raise | tlx verify | count 0

; CHECK-NOT: @token_of
define internal i32 @token_of(ptr byval(<16 x float>) align 64 %v) {
  %w = load <16 x float>, ptr %v, align 64
  %t = call i32 (...) @tensor_typeinfo(<16 x float> %w, i32 16, i32 0, i32 0)
  ret i32 %t
}

; CHECK-NOT: @choose
define internal i32 @choose(i32 %c, i32 %a, i32 %b) {
  %d = icmp ne i32 %c, 0
  br i1 %d, label %first, label %second

first:
  ret i32 %a

second:
  ret i32 %b
}

; CHECK-LABEL: define internal <16 x float> @no_token(<16 x float> %v)
define internal <16 x float> @no_token(<16 x float> %v) {
  %t = call i32 (...) @tensor_typeinfo(<16 x float> %v, i32 16, i32 0, i32 0)
  %r = call <16 x float> (i32, ...) @tensor_tovector(i32 %t)
  ret <16 x float> %r
}

; CHECK-LABEL: define <16 x float> @f(
; CHECK-NEXT: [[A:%.*]] = load <16 x float>, ptr %p
; CHECK-NEXT: br label %[[TA:.*]]
; CHECK: [[TA]]:
; CHECK: call token @llvm.tensor.typeinfo.v16f32.v1i32(<16 x float> [[A]],
; CHECK: [[B:%.*]] = load <16 x float>, ptr %q
; CHECK: call token @llvm.tensor.typeinfo.v16f32.v1i32(<16 x float> [[B]],
; CHECK: [[D:%.*]] = icmp ne i32 %c, 0
; CHECK: br i1 [[D]], label %[[FIRST:.*]], label %[[SECOND:.*]]
; CHECK: [[M:%.*]] = phi <16 x float> [ [[A]], %[[FIRST]] ], [ [[B]], %[[SECOND]] ]
; CHECK-NEXT: [[T:%.*]] = call token @llvm.tensor.typeinfo.v16f32.v1i32(<16 x float> [[M]],
; CHECK-NEXT: %r = call <16 x float> @llvm.tensor.tovector.v16f32(token [[T]])
; CHECK-NEXT: %s = call <16 x float> @no_token(<16 x float> %r)
; CHECK-NEXT: ret <16 x float> %s
define <16 x float> @f(ptr %p, ptr %q, i32 %c) {
  %a = call i32 @token_of(ptr byval(<16 x float>) align 64 %p)
  %b = call i32 @token_of(ptr byval(<16 x float>) align 64 %q)
  %t = call i32 @choose(i32 %c, i32 %a, i32 %b)
  %r = call <16 x float> (i32, ...) @tensor_tovector(i32 %t)
  %s = call <16 x float> @no_token(<16 x float> %r)
  ret <16 x float> %s
}

declare i32 @tensor_typeinfo(...)
declare <16 x float> @tensor_tovector(i32, ...)
