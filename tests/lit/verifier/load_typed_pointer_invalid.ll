; For typed pointers, the message suggests a cast.
;
; RUN: not tlx verify %s 2>&1 | FileCheck --strict-whitespace %s
; CHECK: load_typed_pointer_invalid.ll:9:41: error: load: no user of the token determines the element type of i8* %p; cast the pointer to T*
; CHECK-NEXT: %t = call token @llvm.tensor.load(i8* %p, <2 x i32> <i32 3, i32 4>,
; CHECK-NEXT: {{^ {40}\^~$}}

define void @f(i8* %p, i8* %q) {
  %t = call token @llvm.tensor.load(i8* %p, <2 x i32> <i32 3, i32 4>,
      <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 0>)
  call void @llvm.tensor.store(i8* %q, token %t, <2 x i32> <i32 0, i32 0>)
  ret void
}
