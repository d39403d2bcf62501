; The length of a splat follows from the other operands of its user; a phi does not determine it.
;
; RUN: tlx verify %s 2>&1 | count 0

define void @f(ptr %p, ptr %q, <2 x i32> %s, <vscale x 1 x float> %v, i32 %n) {
  %t = call token @llvm.tensor.load(ptr elementtype(float) %p, <2 x i32> %s, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %u = call token @llvm.tensor.load(ptr elementtype(float) %q, <2 x i32> %s, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  br label %loop
loop:
  %r = call <vscale x 1 x float> @llvm.tensor.matmul(token %t, token %u)
  %a = fadd <vscale x 1 x float> %r, splat (float 1.0)
  br i1 undef, label %loop, label %end
end:
  ret void
}
