; Unsigned by unsigned bytes with a dot product of unsigned by signed ones; 128 is added as twice 64, as it is not a signed byte.
;
;     A @ B = A @ (B xor 128 as s8) + 128 * row sums of A
;
; RUN: grep -v '^;' %s | tlx-lower - -o - --target=avx512 --stop-after=to-tiles | FileCheck %s

; CHECK: %[[B_VNNI:.*]] = call <128 x i8> @llvm.tensor.reshape.block.v128i8.v1i32.v1i32(token %{{.*}}, <1 x i32> <i32 0>, <1 x i32> <i32 4>)
; CHECK-NEXT: %{{.*}} = xor <128 x i8> %[[B_VNNI]], <{{(i8 -128(, )?)+}}>
; CHECK: k.loop.1:
; CHECK-NEXT: %[[K_1:.*]] = phi i64 [ 0, %r.loop ], [ %{{.*}}, %k.loop.1 ]
; CHECK-NEXT: %[[K_ACC:.*]] = phi <16 x i32> [ zeroinitializer, %r.loop ], [ %{{.*}}, %k.loop.1 ]
; CHECK-NEXT: %[[SUM:.*]] = call token @llvm.tensor.typeinfo.v16i32.v2i32(<16 x i32> %[[K_ACC]], <2 x i32> <i32 1, i32 16>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT: %[[T_15:.*]] = mul i64 %[[K_1]], 4
; CHECK-NEXT: %[[T_16:.*]] = add i64 %{{.*}}, %[[T_15]]
; CHECK-NEXT: %[[T_17:.*]] = getelementptr inbounds i8, ptr %{{.*}}, i64 %[[T_16]]
; CHECK-NEXT: %[[A_2:.*]] = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(i8) %[[T_17]], <2 x i32> <i32 1, i32 4>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT: %[[X64:.*]] = call token @llvm.tensor.typeinfo.v64i8.v2i32(<64 x i8> <{{(i8 64(, )?)+}}>, <2 x i32> <i32 4, i32 16>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT: %[[USMMA:.*]] = call <16 x i32> @llvm.tensor.usmma.v16i32(token %[[SUM]], token %[[A_2]], token %[[X64]])
; CHECK-NEXT: %[[K_NEXT_1:.*]] = add i64 %[[K_1]], 1
; CHECK-NEXT: %{{.*}} = icmp slt i64 %[[K_NEXT_1]], 4
; CHECK: k.end.1:
; CHECK-NEXT: %[[T_19:.*]] = add <16 x i32> %[[USMMA]], %[[USMMA]]
; CHECK-NEXT: %[[ROWSUM:.*]] = call token @llvm.tensor.typeinfo.v16i32.v2i32(<16 x i32> %[[T_19]], <2 x i32> <i32 1, i32 16>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 15>)
; CHECK-NEXT: %[[T_20:.*]] = getelementptr inbounds i32, ptr %{{.*}}, i64 %{{.*}}
; CHECK-NEXT: call void @llvm.tensor.store.p0.v2i32(ptr %[[T_20]], token %[[ROWSUM]], <2 x i32> <i32 0, i32 0>)
; CHECK: %[[ROWSUM_1:.*]] = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(i32) %{{.*}}, <2 x i32> <i32 8, i32 1>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT: %[[BROADCAST:.*]] = call <256 x i32> @llvm.tensor.broadcast.v256i32.v2i32.v2i32(token %[[ROWSUM_1]], <2 x i32> <i32 8, i32 32>, <2 x i32> <i32 0, i32 1>)
; CHECK-NEXT: %[[T_22:.*]] = add <256 x i32> %{{.*}}, %[[BROADCAST]]
; CHECK: %{{.*}} = phi <256 x i32> [ %[[T_22]], %r.end ], [ %{{.*}}, %k.loop.2 ]
; CHECK: %{{.*}} = call <256 x i32> @llvm.tensor.usmma.v256i32(token %{{.*}}, token %{{.*}}, token %{{.*}})

define void @f(ptr noalias %c, ptr %a, ptr %b) {
  %acc = call token @llvm.tensor.load(ptr elementtype(i32) %c, <2 x i32> <i32 8, i32 32>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %lhs = call token @llvm.tensor.load(ptr elementtype(i8) %a, <2 x i32> <i32 8, i32 16>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %rhs = call token @llvm.tensor.load(ptr elementtype(i8) %b, <2 x i32> <i32 16, i32 32>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <256 x i32> @llvm.tensor.umma(token %acc, token %lhs, token %rhs)
  %t = call token @llvm.tensor.typeinfo(<256 x i32> %m, <2 x i32> <i32 8, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}
