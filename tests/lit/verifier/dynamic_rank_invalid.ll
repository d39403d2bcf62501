; Shape and layout have the same number of entries.
;
; RUN: not tlx verify %s 2>&1 | FileCheck --strict-whitespace %s
; CHECK: dynamic_rank_invalid.ll:11:88: error: load: shape has 2 entries, layout 3 and padding 2: a tensor needs one of each per dimension
; CHECK-NEXT: all token @llvm.tensor.load(ptr elementtype(float) %p, <2 x i32> %s, <3 x i32> <i32 0, i32 1, i32 2>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
; CHECK-NEXT: {{^ {79}\^~~~~~~~~~~~~~~~~~~~~$}}

define void @f(ptr %p, ptr %q, <2 x i32> %s, <vscale x 1 x float> %v, i32 %n) {
  %t = call token @llvm.tensor.load(ptr elementtype(float) %p, <2 x i32> %s, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %u = call token @llvm.tensor.load(ptr elementtype(float) %q, <2 x i32> %s, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %w = call token @llvm.tensor.load(ptr elementtype(float) %p, <2 x i32> %s, <3 x i32> <i32 0, i32 1, i32 2>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  ret void
}
