; Digits may follow an operation's name directly. A function that nobody defines and that is no operation is left to the
; linker, once with a warning, whether or not the file has tensor operations.
;
; REQUIRES: split-file
; RUN: split-file %s %t
; RUN: tlx raise %t/beside.ll -o %t/raised.ll 2>&1 | FileCheck %s
; RUN: FileCheck %s --check-prefix=RAISED --input-file %t/raised.ll
; RUN: tlx-lower --target=generic %t/beside.ll -o %t/lowered.ll 2>&1 | FileCheck %s
; RUN: tlx verify %t/alone.ll 2>&1 | FileCheck %s --check-prefix=ALONE
; RUN: tlx raise %t/alone.ll 2>/dev/null | cmp - %t/alone.ll
;
; CHECK-NOT: warning
; CHECK: beside.ll:4:3: warning: tensor_frobnicate is neither a tensor operation nor defined here: it is left to the linker{{$}}
; CHECK-NEXT: call void @tensor_frobnicate(i32 4)
; CHECK-NEXT: {{\^~*}}
; CHECK-NOT: warning
; RAISED: %r = call <4 x float> @llvm.tensor.matmul.v4f32(token %t, token %t)
; ALONE-NOT: warning
; ALONE: alone.ll:2:3: warning: tensor_matmuk3 is neither a tensor operation nor defined here: it is left to the linker; did you mean tensor_matmul?
; ALONE: alone.ll:3:3: warning: tensor_exp10 is neither a tensor operation nor defined here: it is left to the linker; did you mean tensor_exp?
; ALONE-NOT: warning

;--- beside.ll
define <4 x float> @f(<4 x float> %v) {
  %t = call i32 (...) @tensor_typeinfo(<4 x float> %v, double 0x200000002, double 0x100000000, double 0.000000e+00)
  %r = call <4 x float> (i32, ...) @tensor_matmul15(i32 %t, i32 %t)
  call void @tensor_frobnicate(i32 4)
  call void @tensor_frobnicate(i32 5)
  call void @tensor_mine(i32 4)
  ret <4 x float> %r
}
define void @tensor_mine(i32 %x) {
  ret void
}
declare <4 x float> @tensor_matmul15(i32, ...)
declare i32 @tensor_typeinfo(...)
declare void @tensor_frobnicate(i32)
declare void @tensor_unused(i32)
;--- alone.ll
define i32 @f() {
  call void @tensor_matmuk3(i32 4)
  %e = call i32 @tensor_exp10(i32 4)
  ret i32 %e
}
declare void @tensor_matmuk3(i32)
declare i32 @tensor_exp10(i32)
