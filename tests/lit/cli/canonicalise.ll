; Spellings of the proposal (unmangled, undeclared, several overloads of a name, the prototype's operand order) become
; names and declarations that stock LLVM accepts. Everything else stays byte for byte, canonical calls included, also after
; opt.
;
; RUN: split-file %s %t
; RUN: tlx canonicalise %t/opaque.ll -o %t/opaque.out.ll
; RUN: FileCheck %s --strict-whitespace --input-file %t/opaque.out.ll
; RUN: opt-19 -passes=verify -disable-output %t/opaque.out.ll
; RUN: tlx canonicalise %t/opaque.out.ll | cmp - %t/opaque.out.ll
; RUN: opt-19 -O2 -S %t/opaque.out.ll -o %t/optimised.ll
; RUN: tlx canonicalise %t/optimised.ll | cmp - %t/optimised.ll
; RUN: tlx canonicalise < %t/typed.ll > %t/typed.out.ll
; RUN: FileCheck %s --check-prefix=TYPED --input-file %t/typed.out.ll
; RUN: opt-14 -passes=verify -disable-output %t/typed.out.ll
; RUN: tlx canonicalise %t/typed.out.ll | cmp - %t/typed.out.ll
; RUN: tlx canonicalise %S/Inputs/plain.ll | cmp - %S/Inputs/plain.ll
; RUN: not tlx canonicalise %t/misspelt_invalid.ll -o %t/none.ll 2>&1 | FileCheck %s --check-prefix=MISSPELT
; RUN: not cat %t/none.ll
; REQUIRES: opt-19, opt-14
;
; CHECK: ; a comment
; CHECK-NEXT: %pair = type { i32, i32 }
; CHECK-NEXT: @g = global %pair zeroinitializer   ; spaces    kept
; CHECK-NEXT: define <4 x float> @f(ptr %x,   ptr %c, <4 x float> %v, <1 x i8> %w) {
; CHECK-NEXT:   %a = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %x, <2 x i32>
; CHECK-NEXT:   %t = call token @llvm.tensor.typeinfo.v4f32.v2i32(<4 x float> %v, <2 x i32>
; CHECK-NEXT:   call void @llvm.tensor.store.p0.v2i32(ptr %c, token %a, <2 x i32> zeroinitializer)
; CHECK-NEXT:   %z =   add i32 1,2 ; odd spacing
; CHECK-NEXT:   %u = call token @llvm.tensor.typeinfo.v1i8.v1i32(<1 x i8> %w, <1 x i32>
; CHECK-NEXT:   %k = call i32 @h(i32 %z)
; CHECK-NEXT:   %r = call <4 x float> @llvm.tensor.relu.v4f32(token %t)
; CHECK-NEXT:   ret <4 x float> %r
; CHECK-NEXT: }
; CHECK-NEXT: declare i32 @h(i32)
; CHECK-EMPTY:
; CHECK-NEXT: declare token @llvm.tensor.load.p0.v2i32(ptr, <2 x i32>, <2 x i32>, <2 x i32>, <2 x i32>)
; CHECK: declare token @llvm.tensor.typeinfo.v4f32.v2i32(
; CHECK: declare void @llvm.tensor.store.p0.v2i32(ptr, token, <2 x i32>)
; CHECK: declare token @llvm.tensor.typeinfo.v1i8.v1i32(
; CHECK: declare <4 x float> @llvm.tensor.relu.v4f32(token)
; CHECK-NEXT: !llvm.ident = !{!0}
; CHECK-NEXT: !0 = !{!"compiler"}
;
; TYPED: call token @llvm.tensor.load.p0f32.v2i32(float* %x,
; TYPED: call void @llvm.tensor.store.p0f32.v2i32(float* %c, token %a, <2 x i32> zeroinitializer)
; TYPED: declare void @llvm.tensor.store.p0f32.v2i32(float*, token, <2 x i32>)
; TYPED-NOT: declare void @llvm.tensor.store(
;
; MISSPELT: misspelt_invalid.ll:2:19: error: unknown intrinsic @llvm.tensor.lod; did you mean @llvm.tensor.load?

;--- opaque.ll
; a comment
%pair = type { i32, i32 }
@g = global %pair zeroinitializer   ; spaces    kept
define <4 x float> @f(ptr %x,   ptr %c, <4 x float> %v, <1 x i8> %w) {
  %a = call token @llvm.tensor.load(ptr elementtype(float) %x, <2 x i32> <i32 2, i32 2>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %t = call token @llvm.tensor.typeinfo(<4 x float> %v, <2 x i32> <i32 2, i32 2>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, <2 x i32> zeroinitializer, token %a)
  %z =   add i32 1,2 ; odd spacing
  %u = call token @llvm.tensor.typeinfo(<1 x i8> %w, <1 x i32> <i32 1>, <1 x i32> zeroinitializer, <1 x i32> zeroinitializer)
  %k = call i32 @h(i32 %z)
  %r = call <4 x float> @llvm.tensor.relu(token %t)
  ret <4 x float> %r
}
declare i32 @h(i32)
!llvm.ident = !{!0}
!0 = !{!"compiler"}
;--- typed.ll
define void @f(float* %x, float* %c) {
  %a = call token @llvm.tensor.load(float* %x, <2 x i32> <i32 2, i32 2>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(float* %c, <2 x i32> zeroinitializer, token %a)
  ret void
}
declare void @llvm.tensor.store(float*, <2 x i32>, token) readnone
;--- misspelt_invalid.ll
define void @f(ptr %x) {
  %a = call token @llvm.tensor.lod(ptr elementtype(float) %x, <2 x i32> <i32 2, i32 2>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  ret void
}
