; Reductions do not change the element type.
;
; RUN: not tlx verify %s 2>&1 | FileCheck --strict-whitespace %s
; CHECK: reduce_element_invalid.ll:14:3: error: reduce.add: the operand has elements of type i8 and the result of type i32: they must agree
; CHECK-NEXT: %c = call <6 x i32> @llvm.tensor.reduce.add(token %x, <2 x i32> <i32 2, i32 2>, <2 x i32> <i32 2, i32 2>)
; CHECK-NEXT: {{^  \^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~$}}
; CHECK-NEXT: reduce_element_invalid.ll:12:3: note: x is 4x6 i8
; CHECK-NEXT: %x = call token @llvm.tensor.typeinfo(<24 x i8> %v, <2 x i32> <i32 4, i32 6>,
; CHECK-NEXT: {{^  \^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~$}}

define void @f(<24 x i8> %v) {
  %x = call token @llvm.tensor.typeinfo(<24 x i8> %v, <2 x i32> <i32 4, i32 6>,
      <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
  %c = call <6 x i32> @llvm.tensor.reduce.add(token %x, <2 x i32> <i32 2, i32 2>, <2 x i32> <i32 2, i32 2>)
  ret void
}
