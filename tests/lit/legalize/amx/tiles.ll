; A 32x32 tile of sums is a 2x2 grid of tile registers, each a phi that starts with a `tilezero` of its own: sharing one
; would make the backend copy tiles through memory. A step of K loads each tile of A (32x32) and B (16x32x2) right before
; its first use and multiplies four times.
;
;     C00 C01     A0
;     C10 C11     A1     B0 B1
;
; RUN: grep -v '^;' %s | tlx-lower - -o - --target=amx --no-amx-permission | FileCheck %s --implicit-check-not=llvm.tensor.

; CHECK-LABEL: define void @f(ptr %c, ptr %a, ptr %b) nounwind noinline "no-builtins" "target-features"="+avx512f,+avx512bw,+avx512dq,+avx512vl,+avx512bf16,+avx512vnni,+f16c,+fma,+avx512vbmi,+amx-tile,+amx-bf16,+amx-int8" "min-legal-vector-width"="512" "prefer-vector-width"="512" {
; CHECK-NEXT: entry:
; CHECK-NEXT: %[[TILE_8:.*]] = call x86_amx @llvm.x86.tilezero.internal(i16 16, i16 64)
; CHECK-NEXT: %[[TILE_9:.*]] = call x86_amx @llvm.x86.tilezero.internal(i16 16, i16 64)
; CHECK-NEXT: %[[TILE_10:.*]] = call x86_amx @llvm.x86.tilezero.internal(i16 16, i16 64)
; CHECK-NEXT: %[[TILE_11:.*]] = call x86_amx @llvm.x86.tilezero.internal(i16 16, i16 64)
; CHECK-NEXT: br label %loop
; CHECK: loop:
; CHECK-NEXT: %[[K:.*]] = phi i64 [ 0, %entry ], [ %{{.*}}, %loop ]
; CHECK-NEXT: %[[SUM_1:.*]] = phi x86_amx [ %[[TILE_8]], %entry ], [ %{{.*}}, %loop ]
; CHECK-NEXT: %[[SUM_2:.*]] = phi x86_amx [ %[[TILE_9]], %entry ], [ %{{.*}}, %loop ]
; CHECK-NEXT: %[[SUM_3:.*]] = phi x86_amx [ %[[TILE_10]], %entry ], [ %{{.*}}, %loop ]
; CHECK-NEXT: %[[SUM_4:.*]] = phi x86_amx [ %[[TILE_11]], %entry ], [ %{{.*}}, %loop ]
; CHECK-NEXT: %[[AK_I:.*]] = mul i64 %[[K]], 32
; CHECK-NEXT: %[[AK:.*]] = getelementptr bfloat, ptr %a, i64 %[[AK_I]]
; CHECK-NEXT: %[[BK_I:.*]] = mul i64 %[[K]], 1024
; CHECK-NEXT: %[[BK:.*]] = getelementptr bfloat, ptr %b, i64 %[[BK_I]]
; CHECK-NEXT: %[[TILE:.*]] = call x86_amx @llvm.x86.tileloadd64.internal(i16 16, i16 64, ptr %[[BK]], i64 128)
; CHECK-NEXT: %[[TILE_1:.*]] = call x86_amx @llvm.x86.tileloadd64.internal(i16 16, i16 64, ptr %[[AK]], i64 192)
; CHECK-NEXT: %[[TILE_2:.*]] = call x86_amx @llvm.x86.tdpbf16ps.internal(i16 16, i16 64, i16 64, x86_amx %[[SUM_1]], x86_amx %[[TILE_1]], x86_amx %[[TILE]])
; CHECK-NEXT: %[[T:.*]] = getelementptr inbounds i8, ptr %[[BK]], i64 64
; CHECK-NEXT: %[[TILE_3:.*]] = call x86_amx @llvm.x86.tileloadd64.internal(i16 16, i16 64, ptr %[[T]], i64 128)
; CHECK-NEXT: %[[TILE_4:.*]] = call x86_amx @llvm.x86.tdpbf16ps.internal(i16 16, i16 64, i16 64, x86_amx %[[SUM_2]], x86_amx %[[TILE_1]], x86_amx %[[TILE_3]])
; CHECK-NEXT: %[[T_1:.*]] = getelementptr inbounds i8, ptr %[[AK]], i64 3072
; CHECK-NEXT: %[[TILE_5:.*]] = call x86_amx @llvm.x86.tileloadd64.internal(i16 16, i16 64, ptr %[[T_1]], i64 192)
; CHECK-NEXT: %[[TILE_6:.*]] = call x86_amx @llvm.x86.tdpbf16ps.internal(i16 16, i16 64, i16 64, x86_amx %[[SUM_3]], x86_amx %[[TILE_5]], x86_amx %[[TILE]])
; CHECK-NEXT: %[[TILE_7:.*]] = call x86_amx @llvm.x86.tdpbf16ps.internal(i16 16, i16 64, i16 64, x86_amx %[[SUM_4]], x86_amx %[[TILE_5]], x86_amx %[[TILE_3]])
; CHECK-NEXT: %[[K_NEXT:.*]] = add i64 %[[K]], 1
; CHECK-NEXT: %[[MORE:.*]] = icmp ult i64 %[[K_NEXT]], 3
; CHECK-NEXT: br i1 %[[MORE]], label %loop, label %end
; CHECK: end:
; CHECK-NEXT: call void @llvm.x86.tilestored64.internal(i16 16, i16 64, ptr %c, i64 128, x86_amx %[[TILE_2]])
; CHECK-NEXT: %[[T_2:.*]] = getelementptr inbounds i8, ptr %c, i64 64
; CHECK-NEXT: call void @llvm.x86.tilestored64.internal(i16 16, i16 64, ptr %[[T_2]], i64 128, x86_amx %[[TILE_4]])
; CHECK-NEXT: %[[T_3:.*]] = getelementptr inbounds i8, ptr %c, i64 2048
; CHECK-NEXT: call void @llvm.x86.tilestored64.internal(i16 16, i16 64, ptr %[[T_3]], i64 128, x86_amx %[[TILE_6]])
; CHECK-NEXT: %[[T_4:.*]] = getelementptr inbounds i8, ptr %c, i64 2112
; CHECK-NEXT: call void @llvm.x86.tilestored64.internal(i16 16, i16 64, ptr %[[T_4]], i64 128, x86_amx %[[TILE_7]])
; CHECK-NEXT: ret void
; CHECK-NEXT: }

define void @f(ptr %c, ptr %a, ptr %b) "tlx-stage"="tiles" {
entry:
  br label %loop

loop:
  %k = phi i64 [ 0, %entry ], [ %k.next, %loop ]
  %sum = phi <1024 x float> [ zeroinitializer, %entry ], [ %next, %loop ]
  %acc = call token @llvm.tensor.typeinfo(<1024 x float> %sum, <2 x i32> <i32 32, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
  %ak.i = mul i64 %k, 32
  %ak = getelementptr bfloat, ptr %a, i64 %ak.i
  %bk.i = mul i64 %k, 1024
  %bk = getelementptr bfloat, ptr %b, i64 %bk.i
  %lhs = call token @llvm.tensor.load(ptr elementtype(bfloat) %ak, <2 x i32> <i32 32, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 96>)
  %rhs.packed = call token @llvm.tensor.load(ptr elementtype(bfloat) %bk, <3 x i32> <i32 16, i32 32, i32 2>, <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> <i32 0, i32 0, i32 0>, <3 x i32> <i32 0, i32 0, i32 0>)
  %rhs.flat = call <1024 x bfloat> @llvm.tensor.reshape.permute(token %rhs.packed, <3 x i32> <i32 0, i32 2, i32 1>, <2 x i32> <i32 32, i32 32>)
  %rhs = call token @llvm.tensor.typeinfo(<1024 x bfloat> %rhs.flat, <2 x i32> <i32 32, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
  %next = call <1024 x float> @llvm.tensor.smma(token %acc, token %lhs, token %rhs)
  %k.next = add i64 %k, 1
  %more = icmp ult i64 %k.next, 3
  br i1 %more, label %loop, label %end

end:
  %out = call token @llvm.tensor.typeinfo(<1024 x float> %next, <2 x i32> <i32 32, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
  call void @llvm.tensor.store(ptr %c, token %out, <2 x i32> <i32 0, i32 0>)
  ret void
}
