; A matrix unit gets one tile shape everywhere: 32x32 sums, 32x64 bytes of A and 64x32 of B. A is read in place where it
; is whole tiles.
;
; RUN: grep -v '^;' %s | tlx-lower - -o - --target=amx --stop-after=to-tiles | FileCheck %s

; CHECK-LABEL: define internal void @tlx.matmul.64x64x128.bf16.bf16.f32(ptr noalias %c, ptr %a, ptr %b) nounwind noinline "tlx-stage"="tiles" "target-features"="+avx512f,+avx512bw,+avx512dq,+avx512vl,+avx512bf16,+avx512vnni,+f16c,+fma,+amx-tile,+amx-bf16,+amx-int8" {
; CHECK-NEXT: entry:
; CHECK-NEXT: %{{.*}} = alloca [16384 x i8], align 64
; CHECK: ic.loop:
; CHECK-NEXT: %{{.*}} = phi i64 [ 0, %jp.end ], [ %{{.*}}, %jr.end ]
; CHECK: jr.loop:
; CHECK-NEXT: %{{.*}} = phi i64 [ 0, %ic.loop ], [ %{{.*}}, %k.end.1 ]
; CHECK: k.loop.1:
; CHECK-NEXT: %{{.*}} = phi i64 [ 0, %jr.loop ], [ %{{.*}}, %k.loop.1 ]
; CHECK-NEXT: %[[K_ACC:.*]] = phi <1024 x float> [ zeroinitializer, %jr.loop ], [ %{{.*}}, %k.loop.1 ]
; CHECK: %[[ACC:.*]] = call token @llvm.tensor.typeinfo.v1024f32.v2i32(<1024 x float> %[[K_ACC]], <2 x i32> <i32 32, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT: %[[T_18:.*]] = getelementptr inbounds bfloat, ptr %{{.*}}, i64 %{{.*}}
; CHECK-NEXT: %[[A_1:.*]] = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(bfloat) %[[T_18]], <2 x i32> <i32 32, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 128>)
; CHECK-NEXT: %[[T_19:.*]] = mul i64 %{{.*}}, 32
; CHECK-NEXT: %[[T_20:.*]] = getelementptr inbounds bfloat, ptr %{{.*}}, i64 %[[T_19]]
; CHECK-NEXT: %[[B_VNNI_1:.*]] = call token @llvm.tensor.load.p0.v3i32(ptr elementtype(bfloat) %[[T_20]], <3 x i32> <i32 16, i32 32, i32 2>, <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> <i32 0, i32 0, i32 0>, <3 x i32> <i32 0, i32 0, i32 0>)
; CHECK-NEXT: %[[B_FLAT:.*]] = call <1024 x bfloat> @llvm.tensor.reshape.permute.v1024bf16.v3i32.v2i32(token %[[B_VNNI_1]], <3 x i32> <i32 0, i32 2, i32 1>, <2 x i32> <i32 32, i32 32>)
; CHECK-NEXT: %[[B_2:.*]] = call token @llvm.tensor.typeinfo.v1024bf16.v2i32(<1024 x bfloat> %[[B_FLAT]], <2 x i32> <i32 32, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT: %[[SMMA:.*]] = call <1024 x float> @llvm.tensor.smma.v1024f32(token %[[ACC]], token %[[A_1]], token %[[B_2]])
; CHECK: %{{.*}} = call token @llvm.tensor.typeinfo.v1024f32.v2i32(<1024 x float> %[[SMMA]], <2 x i32> <i32 32, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)

define void @f(ptr noalias %c, ptr %a, ptr %b) {
  %lhs = call token @llvm.tensor.load(ptr elementtype(bfloat) %a, <2 x i32> <i32 64, i32 128>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %rhs = call token @llvm.tensor.load(ptr elementtype(bfloat) %b, <2 x i32> <i32 128, i32 64>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <4096 x float> @llvm.tensor.matmul(token %lhs, token %rhs)
  %t = call token @llvm.tensor.typeinfo(<4096 x float> %m, <2 x i32> <i32 64, i32 64>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}
