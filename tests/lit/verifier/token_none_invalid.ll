; A token operand is a tensor, not `none`.
;
; RUN: not tlx verify %s 2>&1 | FileCheck --strict-whitespace %s
; CHECK: token_none_invalid.ll:9:54: error: tovector: operand x is none, which is not the token of a tensor
; CHECK-NEXT: %u = call <12 x float> @llvm.tensor.tovector(token none)
; CHECK-NEXT: {{^ {53}\^~~~$}}

define void @f() {
  %u = call <12 x float> @llvm.tensor.tovector(token none)
  ret void
}
