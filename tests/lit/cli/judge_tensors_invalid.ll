; LLVM verifies the canonical form of a module with tensors, but locations are those of the user's file.
;
; RUN: not tlx verify %s 2>&1 | FileCheck %s
; RUN: not tlx-lower %s 2>&1 | FileCheck %s
; CHECK: judge_tensors_invalid.ll:13:39: error: use of undefined value '%q'
; CHECK-NEXT: store <9 x float> %c, <9 x float>* %q
; CHECK-NEXT: {{^                                      \^$}}

define void @f(<9 x float>* %p, <9 x float> %v) {
  %a = call token @llvm.tensor.typeinfo(<9 x float> %v, <2 x i32> <i32 3, i32 3>,
      <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
  %c = call <9 x float> @llvm.tensor.matmul(token %a, token %a)
   store <9 x float> %c, <9 x float>* %q
  ret void
}
