; Shape and layout have the same number of entries.
;
; RUN: tlx verify %s 2>&1 | count 0

define void @f(ptr %p, ptr %q, <2 x i32> %s, <vscale x 1 x float> %v, i32 %n) {
  %t = call token @llvm.tensor.load(ptr elementtype(float) %p, <2 x i32> %s, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %u = call token @llvm.tensor.load(ptr elementtype(float) %q, <2 x i32> %s, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %r = call <vscale x 1 x float> @llvm.tensor.matmul(token %t, token %u)
  ret void
}
