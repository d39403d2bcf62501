; LLVM 14 accepts the functions for equal regions and their calls, in a module with typed pointers and arguments without names.
;
; REQUIRES: clang-14
; RUN: %python %S/../lower/Inputs/repeat.py %s > %t.ll
; RUN: tlx-lower %t.ll --target=avx2 -o %t.lowered.ll
; RUN: clang-14 -Wno-override-module -S -emit-llvm -o - %t.lowered.ll | FileCheck %s
; RUN: tlx-lower %t.ll --target=avx2 --stop-after=to-2d -o %t.lowered.ll
; RUN: clang-14 -Wno-override-module -S -emit-llvm -o - %t.lowered.ll | FileCheck %s

; CHECK: define void @many(float* noalias %0, float* %1)
; CHECK-COUNT-32: call void @many.part(float* %1, float* %0)
; CHECK: define internal void @many.part(float* %0, float* noalias %1)

;--- program
define void @many(float* noalias %0, float* %1) {
; repeat 32
  %x# = call token @llvm.tensor.load(float* elementtype(float) %1, <2 x i32> <i32 2, i32 8>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %r# = call <16 x float> @llvm.tensor.relu(token %x#)
  %y# = call token @llvm.tensor.typeinfo(<16 x float> %r#, <2 x i32> <i32 2, i32 8>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(float* %0, token %y#, <2 x i32> zeroinitializer)
; end
  ret void
}
