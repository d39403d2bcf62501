; B whose rows are 2 KB apart shares two places in a page: it is packed if it is long and many row tiles read it. Rows of
; 1.5 KB, few row tiles, or a short B where a row of a panel is several lines do not pay for packing.

; RUN: tlx-lower %s -o %t --target=avx2 --remarks 2>&1 | FileCheck %s --check-prefixes=CHECK,AVX2
; RUN: tlx-lower %s -o %t --target=avx512 --remarks 2>&1 | FileCheck %s --check-prefixes=CHECK,AVX512

; CHECK: remark: matmul 128x512x1536 float:{{.*}} packed B
define void @many(ptr noalias %a, ptr noalias %b, ptr noalias %c) {
  %x = call token @llvm.tensor.load(ptr elementtype(float) %a, <2 x i32> <i32 128, i32 1536>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %y = call token @llvm.tensor.load(ptr elementtype(float) %b, <2 x i32> <i32 1536, i32 512>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <65536 x float> @llvm.tensor.matmul(token %x, token %y)
  store <65536 x float> %m, ptr %c
  ret void
}

; CHECK: remark: matmul 64x512x1536 float:{{.*}} nothing packed
define void @few(ptr noalias %a, ptr noalias %b, ptr noalias %c) {
  %x = call token @llvm.tensor.load(ptr elementtype(float) %a, <2 x i32> <i32 64, i32 1536>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %y = call token @llvm.tensor.load(ptr elementtype(float) %b, <2 x i32> <i32 1536, i32 512>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <32768 x float> @llvm.tensor.matmul(token %x, token %y)
  store <32768 x float> %m, ptr %c
  ret void
}

; CHECK: remark: matmul 128x384x1536 float:{{.*}} nothing packed
define void @near(ptr noalias %a, ptr noalias %b, ptr noalias %c) {
  %x = call token @llvm.tensor.load(ptr elementtype(float) %a, <2 x i32> <i32 128, i32 1536>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %y = call token @llvm.tensor.load(ptr elementtype(float) %b, <2 x i32> <i32 1536, i32 384>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <49152 x float> @llvm.tensor.matmul(token %x, token %y)
  store <49152 x float> %m, ptr %c
  ret void
}

; AVX2: remark: matmul 128x512x512 float:{{.*}} packed B
; AVX512: remark: matmul 128x512x512 float:{{.*}} nothing packed
define void @short(ptr noalias %a, ptr noalias %b, ptr noalias %c) {
  %x = call token @llvm.tensor.load(ptr elementtype(float) %a, <2 x i32> <i32 128, i32 512>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %y = call token @llvm.tensor.load(ptr elementtype(float) %b, <2 x i32> <i32 512, i32 512>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <65536 x float> @llvm.tensor.matmul(token %x, token %y)
  store <65536 x float> %m, ptr %c
  ret void
}
