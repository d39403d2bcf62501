; The element type is one that tensors support.
;
; RUN: not tlx verify %s 2>&1 | FileCheck --strict-whitespace %s
; CHECK: element_type_invalid.ll:9:54: error: typeinfo: tensors cannot have elements of type fp128: use i1, i8, i16, i32, i64, half, bfloat, float, double
; CHECK-NEXT: %t = call token @llvm.tensor.typeinfo(<12 x fp128> %v, <2 x i32> <i32 3, i32 4>,
; CHECK-NEXT: {{^ {53}\^~$}}

define void @f(<12 x fp128> %v) {
  %t = call token @llvm.tensor.typeinfo(<12 x fp128> %v, <2 x i32> <i32 3, i32 4>,
      <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
  ret void
}
