; A flattened vector has as many elements as its shape.
;
; RUN: not tlx verify %s 2>&1 | FileCheck --strict-whitespace %s
; CHECK: element_count_invalid.ll:9:55: error: typeinfo: expected 240 elements for shape 16x5x3, got <239 x float>
; CHECK-NEXT: %t = call token @llvm.tensor.typeinfo(<239 x float> %v, <3 x i32> <i32 16, i32 5, i32 3>,
; CHECK-NEXT: {{^ {54}\^~$}}

define void @f(<239 x float> %v) {
  %t = call token @llvm.tensor.typeinfo(<239 x float> %v, <3 x i32> <i32 16, i32 5, i32 3>,
      <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> <i32 3, i32 2, i32 1>)
  ret void
}
