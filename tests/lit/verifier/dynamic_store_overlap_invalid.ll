; The rows of a store do not overlap.
;
; RUN: not tlx verify %s 2>&1 | FileCheck --strict-whitespace %s
; CHECK: dynamic_store_overlap_invalid.ll:13:60: error: store: stride 8 of dimension 1 is less than its extent 9: rows would overlap
; CHECK-NEXT: call void @llvm.tensor.store(ptr %q, token %w, <2 x i32> <i32 0, i32 8>)
; CHECK-NEXT: {{^ {59}\^~~~~~~~~~~~~~$}}

define void @f(ptr %p, ptr %q, <2 x i32> %s, <vscale x 1 x float> %v, i32 %n) {
  %t = call token @llvm.tensor.load(ptr elementtype(float) %p, <2 x i32> %s, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %u = call token @llvm.tensor.load(ptr elementtype(float) %q, <2 x i32> %s, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %l = insertelement <2 x i32> <i32 0, i32 9>, i32 %n, i32 0
  %w = call token @llvm.tensor.load(ptr elementtype(float) %p, <2 x i32> %l, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %q, token %w, <2 x i32> <i32 0, i32 8>)
  ret void
}
