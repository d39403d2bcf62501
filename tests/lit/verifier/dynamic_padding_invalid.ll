; Constant padding is less than a constant extent.
;
; RUN: not tlx verify %s 2>&1 | FileCheck --strict-whitespace %s
; CHECK: dynamic_padding_invalid.ll:12:114: error: load: padding 3 of dimension 1 is outside 0 to 2
; CHECK-NEXT: %w = call token @llvm.tensor.load(ptr elementtype(float) %p, <2 x i32> %l, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 3>, <2 x i32> zeroinitializer)
; CHECK-NEXT: {{^ {113}\^~~~~~~~~~~~~~$}}

define void @f(ptr %p, ptr %q, <2 x i32> %s, <vscale x 1 x float> %v, i32 %n) {
  %t = call token @llvm.tensor.load(ptr elementtype(float) %p, <2 x i32> %s, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %u = call token @llvm.tensor.load(ptr elementtype(float) %q, <2 x i32> %s, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %l = insertelement <2 x i32> <i32 0, i32 3>, i32 %n, i32 0
  %w = call token @llvm.tensor.load(ptr elementtype(float) %p, <2 x i32> %l, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 3>, <2 x i32> zeroinitializer)
  ret void
}
