; Windows do not include padding.
;
; RUN: not tlx verify %s 2>&1 | FileCheck --strict-whitespace %s
; CHECK: reduce_padding_invalid.ll:14:69: error: reduce.add: window <4, 1> does not fit: dimension 0 of x has extent 3
; CHECK-NEXT: %c = call <6 x float> @llvm.tensor.reduce.add(token %x, <2 x i32> <i32 4, i32 1>, <2 x i32> <i32 1, i32 1>)
; CHECK-NEXT: {{^ {68}\^~~~~~~~~~~~~~$}}
; CHECK-NEXT: reduce_padding_invalid.ll:12:3: note: x is 4x6 float, padding <1, 0>
; CHECK-NEXT: %x = call token @llvm.tensor.typeinfo(<24 x float> %v, <2 x i32> <i32 4, i32 6>,
; CHECK-NEXT: {{^  \^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~$}}

define void @f(<24 x float> %v) {
  %x = call token @llvm.tensor.typeinfo(<24 x float> %v, <2 x i32> <i32 4, i32 6>,
      <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 1, i32 0>)
  %c = call <6 x float> @llvm.tensor.reduce.add(token %x, <2 x i32> <i32 4, i32 1>, <2 x i32> <i32 1, i32 1>)
  ret void
}
