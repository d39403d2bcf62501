; The last panel of columns is as narrow as whole registers allow; the remaining columns are padding in the tiles of B and C,
; which is neither read nor written.
;
;     N = 100 = 7 registers of 16 with 12 columns of padding
;
; RUN: grep -v '^;' %s | tlx-lower - -o - --target=avx512 --stop-after=to-tiles | FileCheck %s

; CHECK: %[[ACC:.*]] = call token @llvm.tensor.typeinfo.v336f32.v2i32(<336 x float> %{{.*}}, <2 x i32> <i32 3, i32 112>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 12>)
; CHECK-NEXT: %[[T_3:.*]] = getelementptr inbounds float, ptr %{{.*}}, i64 %{{.*}}
; CHECK-NEXT: %[[A_1:.*]] = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %[[T_3]], <2 x i32> <i32 3, i32 1>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 4>)
; CHECK-NEXT: %[[T_4:.*]] = mul i64 %{{.*}}, 100
; CHECK-NEXT: %[[T_5:.*]] = getelementptr inbounds float, ptr %{{.*}}, i64 %[[T_4]]
; CHECK-NEXT: %[[B_1:.*]] = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %[[T_5]], <2 x i32> <i32 1, i32 112>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 12>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT: %[[SMMA:.*]] = call <336 x float> @llvm.tensor.smma.v336f32(token %[[ACC]], token %[[A_1]], token %[[B_1]])
; CHECK: %[[C_1:.*]] = call token @llvm.tensor.typeinfo.v336f32.v2i32(<336 x float> %[[SMMA]], <2 x i32> <i32 3, i32 112>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 12>)
; CHECK: call void @llvm.tensor.store.p0.v2i32(ptr %{{.*}}, token %[[C_1]], <2 x i32> <i32 0, i32 100>)

define void @f(ptr noalias %c, ptr %a, ptr %b) {
  %lhs = call token @llvm.tensor.load(ptr elementtype(float) %a, <2 x i32> <i32 8, i32 4>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %rhs = call token @llvm.tensor.load(ptr elementtype(float) %b, <2 x i32> <i32 4, i32 100>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <800 x float> @llvm.tensor.matmul(token %lhs, token %rhs)
  %t = call token @llvm.tensor.typeinfo(<800 x float> %m, <2 x i32> <i32 8, i32 100>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}
