; The decisions for each product: instruction, register tile, packing, cache blocks. Equal products are reported
; once.
;
; RUN: tlx-lower %s -o /dev/null --target=avx512 --remarks 2>&1 | FileCheck %s --implicit-check-not=remark:
; CHECK: remarks.ll:{{[0-9]+}}:3: remark: matmul 8x32x16 float: multiply-add float x float -> float, register tile 8x32, nothing packed, blocks M 8, N {{[0-9]+}}, K 16; about {{[0-9]+}} % of peak [to-tiles]
; CHECK-NEXT: %m = call <256 x float> @llvm.tensor.matmul(token %lhs, token %rhs)
; CHECK: remark: matmul 8x32x5 bfloat -> float: dot product bfloat x bfloat -> float, register tile 8x32, packed A and B, {{.*}} % of peak; A packed: {{.*}}; B packed: the dot product reads groups of {{[24]}} along K [to-tiles]
; CHECK: remark: matmul 8x32x16 i8 -> i32: dot product i8 x i8 -> i32, register tile {{.*}}, packed A and B, {{.*}} % of peak; A packed: {{.*}}; B packed: the dot product reads groups of {{[24]}} along K [to-tiles]

define void @f(ptr noalias %c, ptr %a, ptr %b) {
  %lhs = call token @llvm.tensor.load(ptr elementtype(float) %a, <2 x i32> <i32 8, i32 16>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %rhs = call token @llvm.tensor.load(ptr elementtype(float) %b, <2 x i32> <i32 16, i32 32>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <256 x float> @llvm.tensor.matmul(token %lhs, token %rhs)
  %t = call token @llvm.tensor.typeinfo(<256 x float> %m, <2 x i32> <i32 8, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}

define void @same(ptr noalias %c, ptr %a, ptr %b) {
  %lhs = call token @llvm.tensor.load(ptr elementtype(float) %a, <2 x i32> <i32 8, i32 16>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %rhs = call token @llvm.tensor.load(ptr elementtype(float) %b, <2 x i32> <i32 16, i32 32>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %product = call <256 x float> @llvm.tensor.matmul(token %lhs, token %rhs)
  %t = call token @llvm.tensor.typeinfo(<256 x float> %product, <2 x i32> <i32 8, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}

define void @g(ptr noalias %c, ptr %a, ptr %b) {
  %lhs = call token @llvm.tensor.load(ptr elementtype(bfloat) %a, <2 x i32> <i32 8, i32 5>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %rhs = call token @llvm.tensor.load(ptr elementtype(bfloat) %b, <2 x i32> <i32 5, i32 32>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <256 x float> @llvm.tensor.matmul(token %lhs, token %rhs)
  %t = call token @llvm.tensor.typeinfo(<256 x float> %m, <2 x i32> <i32 8, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}

define void @h(ptr noalias %c, ptr %a, ptr %b) {
  %lhs = call token @llvm.tensor.load(ptr elementtype(i8) %a, <2 x i32> <i32 8, i32 16>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %rhs = call token @llvm.tensor.load(ptr elementtype(i8) %b, <2 x i32> <i32 16, i32 32>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <256 x i32> @llvm.tensor.matmul(token %lhs, token %rhs)
  %t = call token @llvm.tensor.typeinfo(<256 x i32> %m, <2 x i32> <i32 8, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}
