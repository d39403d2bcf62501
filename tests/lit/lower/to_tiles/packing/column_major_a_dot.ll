; A dot product reads neighbours along K as one word: a column-major A is transposed into a panel, a register of
; columns at a time, with zeros after the remainder.
;
;     K = 21 = 16 + 5, panel of 22
;
; RUN: grep -v '^;' %s | tlx-lower - -o - --target=avx512 --stop-after=to-tiles | FileCheck %s

; CHECK: %[[A_1:.*]] = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(bfloat) %{{.*}}, <2 x i32> <i32 16, i32 8>, <2 x i32> <i32 1, i32 0>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 8>)
; CHECK-NEXT: %[[A_ROWS:.*]] = call <128 x bfloat> @llvm.tensor.transpose.v128bf16.v2i32(token %[[A_1]], <2 x i32> <i32 0, i32 1>)
; CHECK-NEXT: %[[A_PACKED:.*]] = call token @llvm.tensor.typeinfo.v128bf16.v2i32(<128 x bfloat> %[[A_ROWS]], <2 x i32> <i32 8, i32 16>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT: call void @llvm.tensor.store.p0.v2i32(ptr %{{.*}}, token %[[A_PACKED]], <2 x i32> <i32 0, i32 22>)
; CHECK-NEXT: %[[T_9:.*]] = getelementptr inbounds bfloat, ptr %{{.*}}, i64 128
; CHECK: %[[A_2:.*]] = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(bfloat) %[[T_9]], <2 x i32> <i32 6, i32 8>, <2 x i32> <i32 1, i32 0>, <2 x i32> <i32 1, i32 0>, <2 x i32> <i32 0, i32 8>)
; CHECK-NEXT: %[[A_ROWS_1:.*]] = call <48 x bfloat> @llvm.tensor.transpose.v48bf16.v2i32(token %[[A_2]], <2 x i32> <i32 0, i32 1>)
; CHECK-NEXT: %[[A_PACKED_1:.*]] = call token @llvm.tensor.typeinfo.v48bf16.v2i32(<48 x bfloat> %[[A_ROWS_1]], <2 x i32> <i32 8, i32 6>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT: %[[T_10:.*]] = getelementptr inbounds bfloat, ptr %{{.*}}, i64 16
; CHECK-NEXT: call void @llvm.tensor.store.p0.v2i32(ptr %[[T_10]], token %[[A_PACKED_1]], <2 x i32> <i32 0, i32 22>)
; CHECK: %{{.*}} = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(bfloat) %{{.*}}, <2 x i32> <i32 8, i32 2>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 22>)

define void @f(ptr noalias %c, ptr %a, ptr %b) {
  %lhs = call token @llvm.tensor.load(ptr elementtype(bfloat) %a, <2 x i32> <i32 21, i32 8>, <2 x i32> <i32 1, i32 0>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %rhs = call token @llvm.tensor.load(ptr elementtype(bfloat) %b, <2 x i32> <i32 21, i32 32>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <256 x float> @llvm.tensor.matmul(token %lhs, token %rhs)
  %t = call token @llvm.tensor.typeinfo(<256 x float> %m, <2 x i32> <i32 8, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}
