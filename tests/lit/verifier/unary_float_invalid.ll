; Mathematical functions take floating-point elements.
;
; RUN: not tlx verify %s 2>&1 | FileCheck --strict-whitespace %s
; CHECK: unary_float_invalid.ll:14:47: error: exp: x has elements of type i32: exp takes floats, convert x first
; CHECK-NEXT: %c = call <12 x i32> @llvm.tensor.exp(token %x)
; CHECK-NEXT: {{^ {46}\^~$}}
; CHECK-NEXT: unary_float_invalid.ll:12:3: note: x is 3x4 i32
; CHECK-NEXT: %x = call token @llvm.tensor.typeinfo(<12 x i32> %v, <2 x i32> <i32 3, i32 4>,
; CHECK-NEXT: {{^  \^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~$}}

define void @f(<12 x i32> %v) {
  %x = call token @llvm.tensor.typeinfo(<12 x i32> %v, <2 x i32> <i32 3, i32 4>,
      <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
  %c = call <12 x i32> @llvm.tensor.exp(token %x)
  ret void
}
