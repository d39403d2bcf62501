; Vectors of a size known only at run time are not supported.
;
; RUN: not tlx verify %s 2>&1 | FileCheck --strict-whitespace %s
; CHECK: dynamic_vector_invalid.ll:9:62: error: typeinfo: tensors whose size is known only at run time are not supported yet: <vscale x 1 x float>
; CHECK-NEXT: %t = call token @llvm.tensor.typeinfo(<vscale x 1 x float> %v, <2 x i32> <i32 3, i32 4>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT: {{^ {61}\^~$}}

define void @f(<vscale x 1 x float> %v) {
  %t = call token @llvm.tensor.typeinfo(<vscale x 1 x float> %v, <2 x i32> <i32 3, i32 4>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
  ret void
}
