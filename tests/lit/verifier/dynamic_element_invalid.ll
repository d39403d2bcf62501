; Element types of tensors of run-time size are checked.
;
; RUN: not tlx verify %s 2>&1 | FileCheck --strict-whitespace %s
; CHECK: dynamic_element_invalid.ll:11:59: error: matmul: lhs has elements of type float, which do not extend to the result's type half
; CHECK-NEXT: %r = call <vscale x 1 x half> @llvm.tensor.matmul(token %t, token %u)
; CHECK-NEXT: {{^ {58}\^~$}}

define void @f(ptr %p, ptr %q, <2 x i32> %s, <vscale x 1 x float> %v, i32 %n) {
  %t = call token @llvm.tensor.load(ptr elementtype(float) %p, <2 x i32> %s, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %u = call token @llvm.tensor.load(ptr elementtype(float) %q, <2 x i32> %s, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %r = call <vscale x 1 x half> @llvm.tensor.matmul(token %t, token %u)
  ret void
}
