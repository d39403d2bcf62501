; 16x16x16 floats: rows of B at three positions of K stay in registers while one row of A after the other is multiplied.
;
; REQUIRES: clang-19
; RUN: tlx-lower %s -o %t.ll --target=avx512
; RUN: clang-19 -O2 -fPIC -Wno-override-module -S %t.ll -o - | FileCheck %s --implicit-check-not="%rsp"

; CHECK-LABEL: tlx.matmul.16x16x16.f32.f32.f32:
; CHECK:       vfmadd{{.*}} 12(%rsi){1to16}
; CHECK-NEXT:  vfmadd{{.*}} 16(%rsi){1to16}
; CHECK-NEXT:  vfmadd{{.*}} 20(%rsi){1to16}

define void @f(ptr noalias %c, ptr %a, ptr %b) {
  %lhs = call token @llvm.tensor.load(ptr elementtype(float) %a, <2 x i32> <i32 16, i32 16>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %rhs = call token @llvm.tensor.load(ptr elementtype(float) %b, <2 x i32> <i32 16, i32 16>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <256 x float> @llvm.tensor.matmul(token %lhs, token %rhs)
  %t = call token @llvm.tensor.typeinfo(<256 x float> %m, <2 x i32> <i32 16, i32 16>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}
