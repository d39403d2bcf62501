; Kernels with different tile shapes are not merged into one function: the registers would not suffice. If a function
; calls one that uses tiles, LLVM assigns tile registers and configures the unit again after the call.
; RUN: grep -v '^;' %s | tlx-lower - --target=amx --tile=32x32 -o - | FileCheck %s

; CHECK: define internal void @tlx.matmul.32x32x32.i8.i8.i32.ss(
; CHECK: call void @llvm.x86.ldtilecfg(ptr @tlx.amx.tiles)
; CHECK-LABEL: define internal void @tlx.nest.batch(
; CHECK-NOT: ldtilecfg
; CHECK: call x86_amx @llvm.x86.tileloadd64.internal(i16 16, i16 64,
; CHECK: call void @tlx.matmul.32x32x32.i8.i8.i32.ss(
; CHECK: @tlx.amx.tiles = private unnamed_addr constant [64 x i8] c"{{.*}}\40\00\20\00
define void @batch(ptr %a, ptr %b, ptr noalias %c, ptr noalias %d) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %c.i = getelementptr i32, ptr %c, i64 %i
  %x = call token @llvm.tensor.load(ptr elementtype(i8) %a, <2 x i32> <i32 32, i32 64>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %y = call token @llvm.tensor.load(ptr elementtype(i8) %b, <2 x i32> <i32 64, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <1024 x i32> @llvm.tensor.matmul(token %x, token %y)
  %t = call token @llvm.tensor.typeinfo(<1024 x i32> %m, <2 x i32> <i32 32, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c.i, token %t, <2 x i32> zeroinitializer)
  %x.2 = call token @llvm.tensor.load(ptr elementtype(i8) %a, <2 x i32> <i32 32, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %y.2 = call token @llvm.tensor.load(ptr elementtype(i8) %b, <2 x i32> <i32 32, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m.2 = call <1024 x i32> @llvm.tensor.matmul(token %x.2, token %y.2)
  %t.2 = call token @llvm.tensor.typeinfo(<1024 x i32> %m.2, <2 x i32> <i32 32, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %d, token %t.2, <2 x i32> zeroinitializer)
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, 10
  br i1 %more, label %loop, label %end
end:
  ret void
}
