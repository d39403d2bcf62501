; A tensor of run-time size is stored by llvm.tensor.store only.
;
; RUN: not tlx verify %s 2>&1 | FileCheck --strict-whitespace %s
; CHECK: dynamic_use_invalid.ll:12:30: error: %r is the handle of a tensor whose size is known only at run time: llvm.tensor.typeinfo and elementwise instructions take it, 'store' does not
; CHECK-NEXT: store <vscale x 1 x float> %r, ptr %q
; CHECK-NEXT: {{^ {29}\^~$}}

define void @f(ptr %p, ptr %q, <2 x i32> %s, <vscale x 1 x float> %v, i32 %n) {
  %t = call token @llvm.tensor.load(ptr elementtype(float) %p, <2 x i32> %s, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %u = call token @llvm.tensor.load(ptr elementtype(float) %q, <2 x i32> %s, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %r = call <vscale x 1 x float> @llvm.tensor.matmul(token %t, token %u)
  store <vscale x 1 x float> %r, ptr %q
  ret void
}
