; The element type of a result is one that tensors support.
;
; RUN: not tlx verify %s 2>&1 | FileCheck --strict-whitespace %s
; CHECK: result_element_type_invalid.ll:11:3: error: tovector: tensors cannot have elements of type i128: use i1, i8, i16, i32, i64, half, bfloat, float, double
; CHECK-NEXT: %u = call <12 x i128> @llvm.tensor.tovector(token %t)
; CHECK-NEXT: {{^  \^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~$}}

define void @f(<12 x i64> %v) {
  %t = call token @llvm.tensor.typeinfo(<12 x i64> %v, <2 x i32> <i32 3, i32 4>,
      <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
  %u = call <12 x i128> @llvm.tensor.tovector(token %t)
  ret void
}
