; Shapes of vectors of constant size are constants.
;
; RUN: not tlx verify %s 2>&1 | FileCheck --strict-whitespace %s
; CHECK: shape_constant_invalid.ll:9:68: error: typeinfo: operand shape must be a constant in every entry; %s is not; a tensor whose size is known only at run time is a <vscale x 1 x T>
; CHECK-NEXT: %t = call token @llvm.tensor.typeinfo(<12 x float> %v, <2 x i32> %s, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT: {{^ {67}\^~$}}

define void @f(<12 x float> %v, <2 x i32> %s) {
  %t = call token @llvm.tensor.typeinfo(<12 x float> %v, <2 x i32> %s, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
  ret void
}
