; A matrix unit has the same tile shape everywhere: 2x2 sums of 16x16, tiles of 16 rows of 64 bytes. A is read in place if it
; consists of whole tiles; a panel of B is packed tile by tile, right before its first products, by a branch in the one
; loop over all tiles. Sums are stored before the next product, the last ones after the loop.
;
; RUN: grep -v '^;' %s | tlx-lower - -o - --target=amx --stop-after=to-tiles | FileCheck %s

; CHECK-LABEL: define internal void @tlx.matmul.64x64x128.bf16.bf16.f32(ptr noalias %c, ptr %a, ptr %b)
; CHECK: %{{.*}} = alloca [16384 x i8], align 64
; CHECK: t.loop:
; CHECK: %[[SUMS:t.acc.*]] = phi <1024 x float> [ zeroinitializer, %entry ], [ %[[LAST:.*]], %k.end ]
; CHECK: %[[PLACE:t.acc.*]] = phi i64 [ 0, %entry ],
; CHECK: udiv i64 %{{.*}}, 2
; CHECK: br i1 %{{.*}}, label %pack, label %pack.end
; CHECK: pack:
; CHECK: kp.loop:
; CHECK: load{{.*}}, <2 x i32> <i32 8, i32 16>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 64>)
; CHECK: reshape.block{{.*}}, <1 x i32> <i32 0>, <1 x i32> <i32 2>)
; CHECK: pack.end:
; CHECK: %[[DONE:.*]] = call token @llvm.tensor.typeinfo.v1024f32.v2i32(<1024 x float> %[[SUMS]], <2 x i32> <i32 32, i32 32>,
; CHECK-NEXT: %[[AT:.*]] = getelementptr inbounds float, ptr %c, i64 %[[PLACE]]
; CHECK-NEXT: call void @llvm.tensor.store{{.*}}(ptr %[[AT]], token %[[DONE]], <2 x i32> <i32 0, i32 64>)
; CHECK: %[[A:.*]] = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(bfloat) %{{.*}}, <2 x i32> <i32 32, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 128>)
; CHECK: %[[PACKED:.*]] = call token @llvm.tensor.load.p0.v4i32(ptr elementtype(bfloat) %{{.*}}, <4 x i32> <i32 2, i32 16, i32 16, i32 2>,
; CHECK-NEXT: %[[FLAT:.*]] = call <1024 x bfloat> @llvm.tensor.reshape.permute{{.*}}(token %[[PACKED]], <4 x i32> <i32 1, i32 3, i32 0, i32 2>, <2 x i32> <i32 32, i32 32>)
; CHECK-NEXT: %[[B:.*]] = call token @llvm.tensor.typeinfo{{.*}}(<1024 x bfloat> %[[FLAT]], <2 x i32> <i32 32, i32 32>,
; CHECK: call <1024 x float> @llvm.tensor.smma{{.*}}(token %{{.*}}, token %[[A]], token %[[B]])
; CHECK: k.loop:
; CHECK: %[[LAST]] = call <1024 x float> @llvm.tensor.smma
; CHECK: br i1 %{{.*}}, label %k.loop, label %k.end
; CHECK-NOT: smma
; CHECK: t.end:
; CHECK: call void @llvm.tensor.store
; CHECK-NEXT: ret void

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
