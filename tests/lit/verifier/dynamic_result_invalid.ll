; Results of a size known only at run time are not supported.
;
; RUN: not tlx verify %s 2>&1 | FileCheck --strict-whitespace %s
; CHECK: dynamic_result_invalid.ll:11:3: error: tovector: tensors whose size is known only at run time are not supported yet: returns <vscale x 1 x float>
; CHECK-NEXT: %u = call <vscale x 1 x float> @llvm.tensor.tovector(token %t)
; CHECK-NEXT: {{^  \^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~$}}

define void @f(<12 x float> %v) {
  %t = call token @llvm.tensor.typeinfo(<12 x float> %v, <2 x i32> <i32 3, i32 4>,
      <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
  %u = call <vscale x 1 x float> @llvm.tensor.tovector(token %t)
  ret void
}
