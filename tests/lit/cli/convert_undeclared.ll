; Tensor calls as the proposal spells them, unmangled and undeclared, beside LLVM's matrices: in both
; directions the output declares what it calls, and LLVM accepts it.
;
; RUN: tlx convert --to=tensor %s -o %t.ll
; RUN: grep -v "^;" %t.ll | FileCheck %s
; RUN: opt-19 -passes=verify -disable-output %t.ll
; RUN: tlx convert --to=matrix %s -o %t.matrix.ll 2>&1 | FileCheck %s --check-prefix=REMARK
; RUN: opt-19 -passes=verify -disable-output %t.matrix.ll
; RUN: grep -v "^;" %t.matrix.ll | FileCheck %s --check-prefix=MATRIX
; REQUIRES: opt-19
;
; REMARK: convert_undeclared.ll:[[#@LINE+12]]:3: remark: relu stays a tensor operation
; CHECK: %c = call <16 x float> @llvm.tensor.matmul.v16f32(
; CHECK: %e = call <16 x float> @llvm.tensor.relu.v16f32(token %t)
; CHECK: declare token @llvm.tensor.typeinfo.v16f32.v2i32(
; MATRIX: call <16 x float> @llvm.matrix.multiply.v16f32.v16f32.v16f32(
; MATRIX: call <16 x float> @llvm.tensor.relu.v16f32(token %t)

define void @f(ptr %p, ptr %q, ptr %r) {
  %a = load <16 x float>, ptr %p, align 4
  %b = load <16 x float>, ptr %q, align 4
  %c = call <16 x float> @llvm.matrix.multiply.v16f32.v16f32.v16f32(<16 x float> %a, <16 x float> %b, i32 4, i32 4, i32 4)
  %t = call token @llvm.tensor.typeinfo(<16 x float> %c, <2 x i32> <i32 4, i32 4>, <2 x i32> <i32 1, i32 0>, <2 x i32> zeroinitializer)
  %e = call <16 x float> @llvm.tensor.relu(token %t)
  store <16 x float> %e, ptr %r, align 4
  ret void
}

declare <16 x float> @llvm.matrix.multiply.v16f32.v16f32.v16f32(<16 x float>, <16 x float>, i32, i32, i32)
