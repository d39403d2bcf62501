; Tensor intrinsics are called, not invoked.
;
; RUN: not tlx verify %s 2>&1 | FileCheck --strict-whitespace %s
; CHECK: invoke_invalid.ll:9:3: error: load: intrinsics are called with 'call', not with 'invoke'
; CHECK-NEXT: %t = invoke token @llvm.tensor.load(ptr %p, <2 x i32> <i32 3, i32 4>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT: {{^  \^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~$}}

define void @f(ptr %p) personality ptr null {
  %t = invoke token @llvm.tensor.load(ptr %p, <2 x i32> <i32 3, i32 4>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 0>)
      to label %ok unwind label %bad

ok:
  ret void

bad:
  %e = landingpad { ptr, i32 } cleanup
  ret void
}
