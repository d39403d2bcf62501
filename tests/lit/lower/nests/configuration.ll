; The configuration of the matrix unit, vzeroupper and calls are outside of a batch's loop.
; REQUIRES: llvm-19
; RUN: tlx-lower %s --target=amx -o - | llc-19 -O3 -o - | FileCheck %s

; CHECK-LABEL: tlx.nest.batch:
; CHECK:       ldtilecfg
; CHECK-NOT:   ldtilecfg
; CHECK-NOT:   vzeroupper
; CHECK-NOT:   call
; CHECK:       [[BATCH:\.LBB[0-9_]+]]: # %batch.loop
; CHECK-NOT:   ldtilecfg
; CHECK-NOT:   vzeroupper
; CHECK-NOT:   call
; CHECK:       tdpbf16ps
; CHECK-NOT:   ldtilecfg
; CHECK-NOT:   vzeroupper
; CHECK-NOT:   call
; CHECK:       {{jl|jne|jb|jae|jge}} [[BATCH]]
; CHECK:       tilerelease
define void @batch(ptr %a, ptr %b, ptr noalias %c) {
  %x = call token @llvm.tensor.load(ptr elementtype(bfloat) %a, <3 x i32> <i32 20, i32 32, i32 64>, <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> zeroinitializer, <3 x i32> zeroinitializer)
  %y = call token @llvm.tensor.load(ptr elementtype(bfloat) %b, <3 x i32> <i32 20, i32 64, i32 32>, <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> zeroinitializer, <3 x i32> zeroinitializer)
  %m = call <20480 x float> @llvm.tensor.matmul(token %x, token %y)
  %t = call token @llvm.tensor.typeinfo(<20480 x float> %m, <3 x i32> <i32 20, i32 32, i32 32>, <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <3 x i32> zeroinitializer)
  ret void
}
