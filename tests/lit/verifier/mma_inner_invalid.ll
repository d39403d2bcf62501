; The columns of lhs match the rows of rhs.
;
; RUN: not tlx verify %s 2>&1 | FileCheck --strict-whitespace %s
; CHECK: mma_inner_invalid.ll:24:3: error: smma: lhs is 3x4 and rhs is 5x3: inner extents 4 and 5 differ
; CHECK-NEXT: %c = call <9 x i32> @llvm.tensor.smma(token %acc, token %a, token %b)
; CHECK-NEXT: {{^  \^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~$}}
; CHECK-NEXT: mma_inner_invalid.ll:18:3: note: acc is 3x3 i32
; CHECK-NEXT: %acc = call token @llvm.tensor.typeinfo(<9 x i32> %u, <2 x i32> <i32 3, i32 3>,
; CHECK-NEXT: {{^  \^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~$}}
; CHECK-NEXT: mma_inner_invalid.ll:20:3: note: lhs is 3x4 i8
; CHECK-NEXT: %a = call token @llvm.tensor.typeinfo(<12 x i8> %v, <2 x i32> <i32 3, i32 4>,
; CHECK-NEXT: {{^  \^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~$}}
; CHECK-NEXT: mma_inner_invalid.ll:22:3: note: rhs is 5x3 i8
; CHECK-NEXT: %b = call token @llvm.tensor.typeinfo(<15 x i8> %w, <2 x i32> <i32 5, i32 3>,
; CHECK-NEXT: {{^  \^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~$}}

define void @f(<9 x i32> %u, <12 x i8> %v, <15 x i8> %w) {
  %acc = call token @llvm.tensor.typeinfo(<9 x i32> %u, <2 x i32> <i32 3, i32 3>,
      <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
  %a = call token @llvm.tensor.typeinfo(<12 x i8> %v, <2 x i32> <i32 3, i32 4>,
      <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
  %b = call token @llvm.tensor.typeinfo(<15 x i8> %w, <2 x i32> <i32 5, i32 3>,
      <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
  %c = call <9 x i32> @llvm.tensor.smma(token %acc, token %a, token %b)
  ret void
}
