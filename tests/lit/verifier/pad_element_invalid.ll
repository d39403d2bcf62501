; Padding does not change the element type.
;
; RUN: not tlx verify %s 2>&1 | FileCheck --strict-whitespace %s
; CHECK: pad_element_invalid.ll:14:3: error: pad: the operand has elements of type i32 and the result of type i64: they must agree
; CHECK-NEXT: %c = call <12 x i64> @llvm.tensor.pad(token %x, <2 x i32> <i32 1, i32 0>, <2 x i32> <i32 0, i32 -1>, i64 0)
; CHECK-NEXT: {{^  \^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~$}}
; CHECK-NEXT: pad_element_invalid.ll:12:3: note: x is 3x4 i32
; CHECK-NEXT: %x = call token @llvm.tensor.typeinfo(<12 x i32> %v, <2 x i32> <i32 3, i32 4>,
; CHECK-NEXT: {{^  \^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~$}}

define void @f(<12 x i32> %v) {
  %x = call token @llvm.tensor.typeinfo(<12 x i32> %v, <2 x i32> <i32 3, i32 4>,
      <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
  %c = call <12 x i64> @llvm.tensor.pad(token %x, <2 x i32> <i32 1, i32 0>, <2 x i32> <i32 0, i32 -1>, i64 0)
  ret void
}
