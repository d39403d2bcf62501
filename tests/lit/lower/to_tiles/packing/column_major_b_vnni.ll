; A column-major B is packed in VNNI order directly from its columns: neighbours along K are neighbours in memory.
;
;     K = 34 = 16 + 16 + 2
;
; RUN: grep -v '^;' %s | tlx-lower - -o - --target=avx512 --stop-after=to-tiles | FileCheck %s

; CHECK: k.loop:
; CHECK-NEXT: %{{.*}} = phi i64 [ 0, %entry ], [ %{{.*}}, %k.loop ]
; CHECK: k.end:
; CHECK-NEXT: %[[T_5:.*]] = getelementptr inbounds bfloat, ptr %{{.*}}, i64 32
; CHECK-NEXT: %[[B_2:.*]] = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(bfloat) %[[T_5]], <2 x i32> <i32 32, i32 2>, <2 x i32> <i32 1, i32 0>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 34>)
; CHECK-NEXT: %[[B_VNNI_1:.*]] = call <64 x bfloat> @llvm.tensor.reshape.block.v64bf16.v1i32.v1i32(token %[[B_2]], <1 x i32> <i32 0>, <1 x i32> <i32 2>)
; CHECK-NEXT: %[[B_PACKED_1:.*]] = call token @llvm.tensor.typeinfo.v64bf16.v2i32(<64 x bfloat> %[[B_VNNI_1]], <2 x i32> <i32 1, i32 64>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT: %[[T_6:.*]] = getelementptr inbounds bfloat, ptr %{{.*}}, i64 1024
; CHECK-NEXT: call void @llvm.tensor.store.p0.v2i32(ptr %[[T_6]], token %[[B_PACKED_1]], <2 x i32> <i32 0, i32 0>)

define void @f(ptr noalias %c, ptr %a, ptr %b) {
  %lhs = call token @llvm.tensor.load(ptr elementtype(bfloat) %a, <2 x i32> <i32 8, i32 34>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %rhs = call token @llvm.tensor.load(ptr elementtype(bfloat) %b, <2 x i32> <i32 32, i32 34>, <2 x i32> <i32 1, i32 0>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <256 x float> @llvm.tensor.matmul(token %lhs, token %rhs)
  %t = call token @llvm.tensor.typeinfo(<256 x float> %m, <2 x i32> <i32 8, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}
