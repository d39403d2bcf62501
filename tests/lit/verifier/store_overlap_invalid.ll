; Rows of a store do not overlap; those of a load may.
;
; RUN: not tlx verify %s 2>&1 | FileCheck --strict-whitespace %s
; CHECK: store_overlap_invalid.ll:14:60: error: store: stride 2 of dimension 1 is less than its extent 4: rows would overlap
; CHECK-NEXT: call void @llvm.tensor.store(ptr %q, token %t, <2 x i32> <i32 0, i32 2>)
; CHECK-NEXT: {{^ {59}\^~~~~~~~~~~~~~$}}
; CHECK-NEXT: store_overlap_invalid.ll:12:3: note: tensor is 3x4 float
; CHECK-NEXT: %t = call token @llvm.tensor.load(ptr elementtype(float) %p, <2 x i32> <i32 3, i32 4>,
; CHECK-NEXT: {{^  \^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~$}}

define void @f(ptr %p, ptr %q) {
  %t = call token @llvm.tensor.load(ptr elementtype(float) %p, <2 x i32> <i32 3, i32 4>,
      <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 2>)
  call void @llvm.tensor.store(ptr %q, token %t, <2 x i32> <i32 0, i32 2>)
  ret void
}
