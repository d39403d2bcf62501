; Elementwise intrinsics take tensors of run-time size, other functions do not.
;
; RUN: not tlx verify %s 2>&1 | FileCheck --strict-whitespace %s
; CHECK: dynamic_call_invalid.ll:12:58: error: %r is the handle of a tensor whose size is known only at run time: llvm.tensor.typeinfo and elementwise instructions take it, @g does not
; CHECK-NEXT: %a = call <vscale x 1 x float> @g(<vscale x 1 x float> %r)
; CHECK-NEXT: {{^ {57}\^~$}}

define void @f(ptr %p, ptr %q, <2 x i32> %s, <vscale x 1 x float> %v, i32 %n) {
  %t = call token @llvm.tensor.load(ptr elementtype(float) %p, <2 x i32> %s, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %u = call token @llvm.tensor.load(ptr elementtype(float) %q, <2 x i32> %s, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %r = call <vscale x 1 x float> @llvm.tensor.matmul(token %t, token %u)
  %a = call <vscale x 1 x float> @g(<vscale x 1 x float> %r)
  ret void
}
declare <vscale x 1 x float> @g(<vscale x 1 x float>)
