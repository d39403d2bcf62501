; A typed pointer takes elements of its type.
;
; RUN: not tlx verify %s 2>&1 | FileCheck --strict-whitespace %s
; CHECK: store_element_invalid.ll:14:55: error: store: ptr %q takes float and the tensor is 3x4 i32
; CHECK-NEXT: call void @llvm.tensor.store(ptr elementtype(float) %q, token %t, <2 x i32> <i32 0, i32 4>)
; CHECK-NEXT: {{^ {54}\^~$}}
; CHECK-NEXT: store_element_invalid.ll:12:3: note: tensor is 3x4 i32
; CHECK-NEXT: %t = call token @llvm.tensor.typeinfo(<12 x i32> %v, <2 x i32> <i32 3, i32 4>,
; CHECK-NEXT: {{^  \^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~$}}

define void @f(<12 x i32> %v, ptr %q) {
  %t = call token @llvm.tensor.typeinfo(<12 x i32> %v, <2 x i32> <i32 3, i32 4>,
      <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
  call void @llvm.tensor.store(ptr elementtype(float) %q, token %t, <2 x i32> <i32 0, i32 4>)
  ret void
}
