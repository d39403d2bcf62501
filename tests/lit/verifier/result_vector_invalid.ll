; An operation returns a flattened vector.
;
; RUN: not tlx verify %s 2>&1 | FileCheck --strict-whitespace %s
; CHECK: result_vector_invalid.ll:11:3: error: tovector: returns a flattened vector, not [12 x float]
; CHECK-NEXT: %u = call [12 x float] @llvm.tensor.tovector(token %t)
; CHECK-NEXT: {{^  \^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~$}}

define void @f(<12 x float> %v) {
  %t = call token @llvm.tensor.typeinfo(<12 x float> %v, <2 x i32> <i32 3, i32 4>,
      <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
  %u = call [12 x float] @llvm.tensor.tovector(token %t)
  ret void
}
