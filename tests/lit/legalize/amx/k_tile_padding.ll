; With several register tiles, tiles have the full depth and K is padded: with different shapes of the tiles of A, B and C,
; the tile registers would not suffice.
;
; RUN: grep -v '^;' %s | tlx-lower - -o - --target=amx --tile=32x32 | FileCheck %s
; RUN: grep -v '^;' %s | tlx-lower - -o %t.o --target=amx --tile=32x32 -O2 --emit=obj

; CHECK: call void @llvm.x86.tdpbssd(i8 0,
; CHECK: @tlx.amx.tiles = private unnamed_addr constant [64 x i8] c"\01\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\40\00\40\00\40\00\40\00\40\00\40\00\40\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\10\10\10\10\10\10\10\00\00\00\00\00\00\00\00\00", align 64

define void @f(ptr noalias %c, ptr %a, ptr %b) {
  %lhs = call token @llvm.tensor.load(ptr elementtype(i8) %a, <2 x i32> <i32 67, i32 32>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %rhs = call token @llvm.tensor.load(ptr elementtype(i8) %b, <2 x i32> <i32 32, i32 256>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %acc = call token @llvm.tensor.load(ptr elementtype(i32) %c, <2 x i32> <i32 67, i32 256>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <17152 x i32> @llvm.tensor.smma(token %acc, token %lhs, token %rhs)
  %t = call token @llvm.tensor.typeinfo(<17152 x i32> %m, <2 x i32> <i32 67, i32 256>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}
