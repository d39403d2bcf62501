; Operands of matmul extend to the result's type.
;
; RUN: not tlx verify %s 2>&1 | FileCheck --strict-whitespace %s
; CHECK: matmul_narrow_invalid.ll:19:50: error: matmul: lhs has elements of type bfloat, which do not extend to the result's type half
; CHECK-NEXT: %c = call <9 x half> @llvm.tensor.matmul(token %a, token %b)
; CHECK-NEXT: {{^ {49}\^~$}}
; CHECK-NEXT: matmul_narrow_invalid.ll:15:3: note: lhs is 3x4 bfloat
; CHECK-NEXT: %a = call token @llvm.tensor.typeinfo(<12 x bfloat> %v, <2 x i32> <i32 3, i32 4>,
; CHECK-NEXT: {{^  \^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~$}}
; CHECK-NEXT: matmul_narrow_invalid.ll:17:3: note: rhs is 4x3 bfloat
; CHECK-NEXT: %b = call token @llvm.tensor.typeinfo(<12 x bfloat> %w, <2 x i32> <i32 4, i32 3>,
; CHECK-NEXT: {{^  \^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~$}}

define void @f(<12 x bfloat> %v, <12 x bfloat> %w) {
  %a = call token @llvm.tensor.typeinfo(<12 x bfloat> %v, <2 x i32> <i32 3, i32 4>,
      <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
  %b = call token @llvm.tensor.typeinfo(<12 x bfloat> %w, <2 x i32> <i32 4, i32 3>,
      <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
  %c = call <9 x half> @llvm.tensor.matmul(token %a, token %b)
  ret void
}
