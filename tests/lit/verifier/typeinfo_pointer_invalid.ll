; typeinfo of a pointer needs its element type.
;
; RUN: not tlx verify %s 2>&1 | FileCheck --strict-whitespace %s
; CHECK: typeinfo_pointer_invalid.ll:9:45: error: typeinfo: ptr %p does not say what it points to: write elementtype(<E x T>) in front of it
; CHECK-NEXT: %t = call token @llvm.tensor.typeinfo(ptr %p, <2 x i32> <i32 3, i32 4>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT: {{^ {44}\^~$}}

define void @f(ptr %p) {
  %t = call token @llvm.tensor.typeinfo(ptr %p, <2 x i32> <i32 3, i32 4>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
  ret void
}
