; Products that are too small for the matrix unit to pay are computed by vectors, unless a knob selects a tile of the unit.
;
; RUN: grep -v '^;' %s | tlx-lower - -o - --target=amx --remarks=%t | FileCheck %s
; RUN: FileCheck %s --check-prefix=REMARK --input-file=%t
; RUN: grep -v '^;' %s | tlx-lower - -o - --target=amx --tile=16x16 | FileCheck %s --check-prefix=ASKED

; CHECK: define internal void @tlx.matmul.16x16x16.i8.i8.i32.us(
; CHECK-NOT: tileloadd
; CHECK: llvm.x86.avx512.vpdpbusd.512
; CHECK: define internal void @tlx.matmul.64x64x64.i8.i8.i32.us(
; CHECK: llvm.x86.tdpbusd(

; REMARK: remark: matmul 16x16x16 i8 -> i32: dot product {{.*}}; too small for the matrix unit
; REMARK: remark: matmul 64x64x64 i8 -> i32: matrix unit

; ASKED: define internal void @tlx.matmul.16x16x16.i8.i8.i32.us(
; ASKED: llvm.x86.tdpbusd(

define void @small(ptr noalias %c, ptr %a, ptr %b) {
  %lhs = call token @llvm.tensor.load(ptr elementtype(i8) %a, <2 x i32> <i32 16, i32 16>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %rhs = call token @llvm.tensor.load(ptr elementtype(i8) %b, <2 x i32> <i32 16, i32 16>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %z = call token @llvm.tensor.typeinfo(<256 x i32> zeroinitializer, <2 x i32> <i32 16, i32 16>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  %m = call <256 x i32> @llvm.tensor.usmma(token %z, token %lhs, token %rhs)
  %t = call token @llvm.tensor.typeinfo(<256 x i32> %m, <2 x i32> <i32 16, i32 16>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}

define void @large(ptr noalias %c, ptr %a, ptr %b) {
  %lhs = call token @llvm.tensor.load(ptr elementtype(i8) %a, <2 x i32> <i32 64, i32 64>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %rhs = call token @llvm.tensor.load(ptr elementtype(i8) %b, <2 x i32> <i32 64, i32 64>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %z = call token @llvm.tensor.typeinfo(<4096 x i32> zeroinitializer, <2 x i32> <i32 64, i32 64>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  %m = call <4096 x i32> @llvm.tensor.usmma(token %z, token %lhs, token %rhs)
  %t = call token @llvm.tensor.typeinfo(<4096 x i32> %m, <2 x i32> <i32 64, i32 64>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}
