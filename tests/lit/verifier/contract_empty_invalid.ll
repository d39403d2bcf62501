; LLVM has no empty vectors: an empty list of axes is <-1>, and both lists of a pair are empty.
;
; REQUIRES: split-file
; RUN: split-file %s %t
; RUN: not tlx verify %t/zero.ll 2>&1 | FileCheck %s --check-prefix=ZERO
; RUN: not tlx verify %t/shape.ll 2>&1 | FileCheck %s --check-prefix=SHAPE
; RUN: not tlx verify %t/one.ll 2>&1 | FileCheck %s --check-prefix=ONE
; RUN: not tlx verify %t/two.ll 2>&1 | FileCheck %s --check-prefix=TWO
; ZERO: zero.ll:3:78: error: contract: operand axes_a is a <0 x i32>, which LLVM does not have: write <1 x i32> <i32 -1> for an empty list, or omit all lists
; SHAPE: shape.ll:2:67: error: typeinfo: operand shape is a <0 x i32>, which LLVM does not have: shape needs a number for each dimension
; ONE: one.ll:3:98: error: contract: axes_a (empty) and axes_b <0> must have the same number of entries
; TWO: two.ll:3:78: error: contract: axes_a <-1, -1> must be dimensions of a, 0 to 0

;--- zero.ll
define void @f(<6 x float> %v) {
  %a = call token @llvm.tensor.typeinfo(<6 x float> %v, <1 x i32> <i32 6>, <1 x i32> zeroinitializer, <1 x i32> zeroinitializer)
  %c = call <36 x float> @llvm.tensor.contract(token %a, token %a, <0 x i32> zeroinitializer, <0 x i32> zeroinitializer)
  ret void
}
;--- shape.ll
define void @f(<1 x float> %v) {
  %a = call token @llvm.tensor.typeinfo(<1 x float> %v, <0 x i32> zeroinitializer, <0 x i32> zeroinitializer, <0 x i32> zeroinitializer)
  %c = call <1 x float> @llvm.tensor.relu(token %a)
  ret void
}
;--- one.ll
define void @f(<6 x float> %v) {
  %a = call token @llvm.tensor.typeinfo(<6 x float> %v, <1 x i32> <i32 6>, <1 x i32> zeroinitializer, <1 x i32> zeroinitializer)
  %c = call <36 x float> @llvm.tensor.contract(token %a, token %a, <1 x i32> <i32 -1>, <1 x i32> zeroinitializer)
  ret void
}
;--- two.ll
define void @f(<6 x float> %v) {
  %a = call token @llvm.tensor.typeinfo(<6 x float> %v, <1 x i32> <i32 6>, <1 x i32> zeroinitializer, <1 x i32> zeroinitializer)
  %c = call <36 x float> @llvm.tensor.contract(token %a, token %a, <2 x i32> <i32 -1, i32 -1>, <2 x i32> <i32 -1, i32 -1>)
  ret void
}
