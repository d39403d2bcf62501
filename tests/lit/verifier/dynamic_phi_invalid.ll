; The length of a splat follows from the other operands of its user; a phi does not determine it.
;
; RUN: not tlx verify %s 2>&1 | FileCheck --strict-whitespace %s
; CHECK: dynamic_phi_invalid.ll:13:35: error: zeroinitializer is not the result of a tensor operation, so its number of elements is unknown
; CHECK-NEXT: %a = phi <vscale x 1 x float> [ zeroinitializer, %0 ], [ %r, %loop ]
; CHECK-NEXT: {{^ {34}\^~~~~~~~~~~~~~~$}}

define void @f(ptr %p, ptr %q, <2 x i32> %s, <vscale x 1 x float> %v, i32 %n) {
  %t = call token @llvm.tensor.load(ptr elementtype(float) %p, <2 x i32> %s, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %u = call token @llvm.tensor.load(ptr elementtype(float) %q, <2 x i32> %s, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  br label %loop
loop:
  %a = phi <vscale x 1 x float> [ zeroinitializer, %0 ], [ %r, %loop ]
  %r = call <vscale x 1 x float> @llvm.tensor.matmul(token %t, token %u)
  br i1 undef, label %loop, label %end
end:
  ret void
}
