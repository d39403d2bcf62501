; A pointer to a flattened tensor points to a vector.
;
; RUN: not tlx verify %s 2>&1 | FileCheck --strict-whitespace %s
; CHECK: typeinfo_pointee_invalid.ll:9:58: error: typeinfo: ptr %p points to float: write elementtype(<E x T>) in front of it
; CHECK-NEXT: %t = call token @llvm.tensor.typeinfo(ptr byval(float) %p, <2 x i32> <i32 3, i32 4>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT: {{^ {57}\^~$}}

define void @f(ptr %p) {
  %t = call token @llvm.tensor.typeinfo(ptr byval(float) %p, <2 x i32> <i32 3, i32 4>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
  ret void
}
