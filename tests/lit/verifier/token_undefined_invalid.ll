; A token operand is defined in the function.
;
; RUN: not tlx verify %s 2>&1 | FileCheck --strict-whitespace %s
; CHECK: token_undefined_invalid.ll:11:54: error: tovector: operand x is %s, which is not defined in @f
; CHECK-NEXT: %u = call <12 x float> @llvm.tensor.tovector(token %s)
; CHECK-NEXT: {{^ {53}\^~$}}

define void @f(<12 x float> %v) {
  %t = call token @llvm.tensor.typeinfo(<12 x float> %v, <2 x i32> <i32 3, i32 4>,
      <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
  %u = call <12 x float> @llvm.tensor.tovector(token %s)
  ret void
}
