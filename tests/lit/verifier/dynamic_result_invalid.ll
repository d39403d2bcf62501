; The result of operations on tensors of run-time size is a <vscale x 1 x T>.
;
; RUN: not tlx verify %s 2>&1 | FileCheck --strict-whitespace %s
; CHECK: dynamic_result_invalid.ll:11:3: error: matmul: returns <vscale x 1 x float>, not <16 x float>, as the extents of %t are known only at run time
; CHECK-NEXT: %r = call <16 x float> @llvm.tensor.matmul(token %t, token %u)
; CHECK-NEXT: {{^ {2}\^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~$}}

define void @f(ptr %p, ptr %q, <2 x i32> %s, <vscale x 1 x float> %v, i32 %n) {
  %t = call token @llvm.tensor.load(ptr elementtype(float) %p, <2 x i32> %s, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %u = call token @llvm.tensor.load(ptr elementtype(float) %q, <2 x i32> %s, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %r = call <16 x float> @llvm.tensor.matmul(token %t, token %u)
  ret void
}
