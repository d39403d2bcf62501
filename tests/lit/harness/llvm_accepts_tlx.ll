; Stock LLVM parses, verifies and prints tensor operations that it does not know.
;
; REQUIRES: llvm-19
; RUN: opt-19 -passes=verify -S %s | FileCheck %s

; CHECK-LABEL: define void @relu(
; CHECK: %[[X:.*]] = call token @llvm.tensor.load.p0.v2i32(
; CHECK: %[[Y:.*]] = call <6 x float> @llvm.tensor.relu.v6f32(token %[[X]])
define void @relu(ptr %x, ptr %y) {
  %t = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %x, <2 x i32> <i32 2, i32 3>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %v = call <6 x float> @llvm.tensor.relu.v6f32(token %t)
  store <6 x float> %v, ptr %y
  ret void
}

declare token @llvm.tensor.load.p0.v2i32(ptr, <2 x i32>, <2 x i32>, <2 x i32>, <2 x i32>) nounwind memory(argmem: read)
declare <6 x float> @llvm.tensor.relu.v6f32(token) nounwind willreturn speculatable memory(none)
