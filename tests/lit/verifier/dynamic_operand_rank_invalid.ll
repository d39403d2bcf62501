; Ranks of tensors of run-time size are constant and checked.
;
; RUN: not tlx verify %s 2>&1 | FileCheck --strict-whitespace %s
; CHECK: dynamic_operand_rank_invalid.ll:12:3: error: matmul: lhs has rank 2 and rhs has rank 3: both must have the same rank of at least 2
; CHECK-NEXT: %r = call <vscale x 1 x float> @llvm.tensor.matmul(token %t, token %w)
; CHECK-NEXT: {{^ {2}\^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~$}}

define void @f(ptr %p, ptr %q, <2 x i32> %s, <vscale x 1 x float> %v, i32 %n) {
  %t = call token @llvm.tensor.load(ptr elementtype(float) %p, <2 x i32> %s, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %u = call token @llvm.tensor.load(ptr elementtype(float) %q, <2 x i32> %s, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %w = call token @llvm.tensor.load(ptr elementtype(float) %p, <3 x i32> <i32 1, i32 2, i32 3>, <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> zeroinitializer, <3 x i32> zeroinitializer)
  %r = call <vscale x 1 x float> @llvm.tensor.matmul(token %t, token %w)
  ret void
}
