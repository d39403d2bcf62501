; Sums are stored when the next tile starts. The first tile is peeled off the loop, as there is nothing to store yet:
; 64x64x64 bytes are 4 register tiles, 16 tile products of 16 cycles and 16 tile stores of 16.
; RUN: grep -v '^;' %s > %t.ll && tlx-lower %t.ll --target=amx --stop-after=to-tiles -o - | FileCheck %s
; RUN: tlx-lower %t.ll --target=amx -O 2 --emit=asm -o - | FileCheck %s --check-prefix=ASM
; CHECK-LABEL: define internal void @tlx.matmul.64x64x64.i8.i8.i32.ss(
; CHECK-NOT:     llvm.tensor.store
; CHECK:         %[[FIRST:.*]] = call <1024 x i32> @llvm.tensor.smma
; CHECK-NOT:     llvm.tensor.store
; CHECK:       t.loop:
; CHECK-NEXT:    phi i64 [ 1, %entry ]
; CHECK-NEXT:    phi <1024 x i32> [ %[[FIRST]], %entry ]
; CHECK:         llvm.tensor.store
; CHECK:         llvm.tensor.smma
; CHECK:       t.end:
; CHECK:         llvm.tensor.store
; CHECK-NEXT:    ret void
; ASM-LABEL: tlx.matmul.64x64x64.i8.i8.i32.ss:
; ASM:       ldtilecfg
; ASM-NOT:   tilestored
; ASM-COUNT-4: tdpbssd
; ASM-NOT:   tdp
; ASM:       tilestored
; ASM:       retq
define void @f(ptr noalias %c, ptr %a, ptr %b) {
  %lhs = call token @llvm.tensor.load(ptr elementtype(i8) %a, <3 x i32> <i32 64, i32 16, i32 4>, <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> zeroinitializer, <3 x i32> zeroinitializer)
  %rhs = call token @llvm.tensor.load(ptr elementtype(i8) %b, <3 x i32> <i32 16, i32 64, i32 4>, <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> zeroinitializer, <3 x i32> zeroinitializer)
  %m = call <4096 x i32> @llvm.tensor.contract(token %lhs, token %rhs, <2 x i32> <i32 1, i32 2>, <2 x i32> <i32 0, i32 2>)
  %t = call token @llvm.tensor.typeinfo(<4096 x i32> %m, <2 x i32> <i32 64, i32 64>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}
declare token @llvm.tensor.load(ptr, <3 x i32>, <3 x i32>, <3 x i32>, <3 x i32>)
declare token @llvm.tensor.typeinfo(<4096 x i32>, <2 x i32>, <2 x i32>, <2 x i32>)
declare <4096 x i32> @llvm.tensor.contract(token, token, <2 x i32>, <2 x i32>)
declare void @llvm.tensor.store(ptr, token, <2 x i32>)
