; A token operand is the result of a tensor operation.
;
; RUN: not tlx verify %s 2>&1 | FileCheck --strict-whitespace %s
; CHECK: token_of_other_invalid.ll:13:54: error: tovector: operand x is %t, a token of @llvm.coro.id, which does not make tensors
; CHECK-NEXT: %u = call <12 x float> @llvm.tensor.tovector(token %t)
; CHECK-NEXT: {{^ {53}\^~$}}
; CHECK-NEXT: token_of_other_invalid.ll:12:3: note: defined here
; CHECK-NEXT: %t = call token @llvm.coro.id(i32 0, ptr null, ptr null, ptr null)
; CHECK-NEXT: {{^  \^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~$}}

define void @f() {
  %t = call token @llvm.coro.id(i32 0, ptr null, ptr null, ptr null)
  %u = call <12 x float> @llvm.tensor.tovector(token %t)
  ret void
}

declare token @llvm.coro.id(i32, ptr, ptr, ptr)
