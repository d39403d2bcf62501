; A layout is a permutation.
;
; RUN: not tlx verify %s 2>&1 | FileCheck --strict-whitespace %s
; CHECK: dynamic_permutation_invalid.ll:11:88: error: load: layout <1, 1> is not a permutation of 0 to 1
; CHECK-NEXT: %w = call token @llvm.tensor.load(ptr elementtype(float) %p, <2 x i32> %s, <2 x i32> <i32 1, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
; CHECK-NEXT: {{^ {87}\^~~~~~~~~~~~~~$}}

define void @f(ptr %p, ptr %q, <2 x i32> %s, <vscale x 1 x float> %v, i32 %n) {
  %t = call token @llvm.tensor.load(ptr elementtype(float) %p, <2 x i32> %s, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %u = call token @llvm.tensor.load(ptr elementtype(float) %q, <2 x i32> %s, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %w = call token @llvm.tensor.load(ptr elementtype(float) %p, <2 x i32> %s, <2 x i32> <i32 1, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  ret void
}
