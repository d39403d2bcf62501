; The kinds of the operands are those of a form of the intrinsic.
;
; RUN: not tlx verify %s 2>&1 | FileCheck --strict-whitespace %s
; CHECK: operand_kind_invalid.ll:11:69: error: transpose: operand new_layout must be a constant vector of i32, got <2 x i64>
; CHECK-NEXT: %u = call <12 x float> @llvm.tensor.transpose(token %t, <2 x i64> <i64 1, i64 0>)
; CHECK-NEXT: {{^ {68}\^~~~~~~~~~~~~~$}}

define void @f(<12 x float> %v) {
  %t = call token @llvm.tensor.typeinfo(<12 x float> %v, <2 x i32> <i32 3, i32 4>,
      <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
  %u = call <12 x float> @llvm.tensor.transpose(token %t, <2 x i64> <i64 1, i64 0>)
  ret void
}
