; A store returns nothing.
;
; RUN: not tlx verify %s 2>&1 | FileCheck --strict-whitespace %s
; CHECK: result_void_invalid.ll:11:3: error: store: returns void, not i32
; CHECK-NEXT: %n = call i32 @llvm.tensor.store(ptr %p, token %t, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT: {{^  \^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~$}}

define void @f(<12 x float> %v, ptr %p) {
  %t = call token @llvm.tensor.typeinfo(<12 x float> %v, <2 x i32> <i32 3, i32 4>,
      <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
  %n = call i32 @llvm.tensor.store(ptr %p, token %t, <2 x i32> <i32 0, i32 0>)
  ret void
}
