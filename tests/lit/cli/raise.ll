; The placeholder functions of tlx.h become tensor operations; other modules are output unchanged.
;
; RUN: tlx raise %s | FileCheck %s
; RUN: tlx raise %s -o %t.ll && tlx verify %t.ll 2>&1 | count 0
; RUN: tlx raise %S/Inputs/plain.ll | cmp - %S/Inputs/plain.ll
; RUN: tlx-lower --target=generic %s | grep -v "^;" | FileCheck %s --check-prefix=LOWERED
; CHECK: call token @llvm.tensor.typeinfo
; CHECK: call <16 x float> @llvm.tensor.matmul
; LOWERED: {{^}}define void @square(
; LOWERED-NOT: @tensor_

define void @square(ptr %p) {
  %v = load <16 x float>, ptr %p, align 4
  %slot = alloca <16 x float>, align 64
  store <16 x float> %v, ptr %slot, align 64
  %t = call i32 (...) @tensor_typeinfo(ptr byval(<16 x float>) align 64 %slot, double 0x400000004, double 0x100000000, double 0.000000e+00)
  %r = call <16 x float> (i32, ...) @tensor_matmul(i32 %t, i32 %t)
  store <16 x float> %r, ptr %p, align 4
  ret void
}

declare i32 @tensor_typeinfo(...)
declare <16 x float> @tensor_matmul(i32, ...)
