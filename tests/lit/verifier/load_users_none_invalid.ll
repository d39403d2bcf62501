; The element type of an opaque pointer comes from an attribute or from a user of the token.
;
; RUN: not tlx verify %s 2>&1 | FileCheck --strict-whitespace %s
; CHECK: load_users_none_invalid.ll:9:41: error: load: no user of the token determines the element type of ptr %p; write ptr elementtype(T) %p
; CHECK-NEXT: %t = call token @llvm.tensor.load(ptr %p, <2 x i32> <i32 3, i32 4>,
; CHECK-NEXT: {{^ {40}\^~$}}

define void @f(ptr %p, ptr %q) {
  %t = call token @llvm.tensor.load(ptr %p, <2 x i32> <i32 3, i32 4>,
      <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 0>)
  call void @llvm.tensor.store(ptr %q, token %t, <2 x i32> <i32 0, i32 0>)
  ret void
}
