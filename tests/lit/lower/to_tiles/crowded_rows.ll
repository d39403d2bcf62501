; B whose rows are 2 KB apart shares two places in a page: it is packed if many row tiles read it. Rows of 1.5 KB, or few
; row tiles, do not pay for packing.

; RUN: tlx-lower %s -o %t --target=avx2 --remarks 2>&1 | FileCheck %s
; RUN: tlx-lower %s -o %t --target=avx512 --remarks 2>&1 | FileCheck %s

; CHECK: remark: matmul 160x512x128 float:{{.*}} packed B,{{.*}} B packed: rows 2 KB apart share cache sets
define void @many(ptr noalias %a, ptr noalias %b, ptr noalias %c) {
  %x = call token @llvm.tensor.load(ptr elementtype(float) %a, <2 x i32> <i32 160, i32 128>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %y = call token @llvm.tensor.load(ptr elementtype(float) %b, <2 x i32> <i32 128, i32 512>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <81920 x float> @llvm.tensor.matmul(token %x, token %y)
  store <81920 x float> %m, ptr %c
  ret void
}

; CHECK: remark: matmul 64x512x128 float:{{.*}} nothing packed
define void @few(ptr noalias %a, ptr noalias %b, ptr noalias %c) {
  %x = call token @llvm.tensor.load(ptr elementtype(float) %a, <2 x i32> <i32 64, i32 128>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %y = call token @llvm.tensor.load(ptr elementtype(float) %b, <2 x i32> <i32 128, i32 512>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <32768 x float> @llvm.tensor.matmul(token %x, token %y)
  store <32768 x float> %m, ptr %c
  ret void
}

; CHECK: remark: matmul 160x384x128 float:{{.*}} nothing packed
define void @other(ptr noalias %a, ptr noalias %b, ptr noalias %c) {
  %x = call token @llvm.tensor.load(ptr elementtype(float) %a, <2 x i32> <i32 160, i32 128>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %y = call token @llvm.tensor.load(ptr elementtype(float) %b, <2 x i32> <i32 128, i32 384>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <61440 x float> @llvm.tensor.matmul(token %x, token %y)
  store <61440 x float> %m, ptr %c
  ret void
}
