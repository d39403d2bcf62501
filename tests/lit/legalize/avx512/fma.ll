; Multiply-adds are `llvm.fma` on 512-bit registers; an element of A is loaded and splat right before its use.
;
; RUN: grep -v '^;' %s | tlx-lower - -o - --target=avx512 | FileCheck %s --implicit-check-not=llvm.tensor.

; CHECK-LABEL: define void @f(ptr %c, ptr %a, ptr %b) nounwind noinline "no-builtins" "target-features"="+avx512f,+avx512bw,+avx512dq,+avx512vl,+avx512bf16,+avx512vnni,+f16c,+fma" "min-legal-vector-width"="512" "prefer-vector-width"="512" {
; CHECK-NEXT: entry:
; CHECK-NEXT: br label %loop
; CHECK: loop:
; CHECK-NEXT: %[[K:.*]] = phi i64 [ 0, %entry ], [ %{{.*}}, %loop ]
; CHECK-NEXT: %[[SUM_1:.*]] = phi <16 x float> [ zeroinitializer, %entry ], [ %{{.*}}, %loop ]
; CHECK-NEXT: %[[SUM_2:.*]] = phi <16 x float> [ zeroinitializer, %entry ], [ %{{.*}}, %loop ]
; CHECK-NEXT: %[[AK_I:.*]] = mul i64 %[[K]], 1
; CHECK-NEXT: %[[AK:.*]] = getelementptr float, ptr %a, i64 %[[AK_I]]
; CHECK-NEXT: %[[BK_I:.*]] = mul i64 %[[K]], 16
; CHECK-NEXT: %[[BK:.*]] = getelementptr float, ptr %b, i64 %[[BK_I]]
; CHECK-NEXT: %[[T:.*]] = load <16 x float>, ptr %[[BK]], align 4
; CHECK-NEXT: %[[T_1:.*]] = load float, ptr %[[AK]], align 4
; CHECK-NEXT: %[[T_2:.*]] = insertelement <16 x float> undef, float %[[T_1]], i32 0
; CHECK-NEXT: %[[T_3:.*]] = shufflevector <16 x float> %[[T_2]], <16 x float> undef, <16 x i32> <{{(i32 0(, )?)+}}>
; CHECK-NEXT: %[[ACC_1:.*]] = call <16 x float> @llvm.fma.v16f32(<16 x float> %[[T_3]], <16 x float> %[[T]], <16 x float> %[[SUM_1]])
; CHECK-NEXT: %[[T_4:.*]] = getelementptr inbounds float, ptr %[[AK]], i64 9
; CHECK-NEXT: %[[T_5:.*]] = load float, ptr %[[T_4]], align 4
; CHECK-NEXT: %[[T_6:.*]] = insertelement <16 x float> undef, float %[[T_5]], i32 0
; CHECK-NEXT: %[[T_7:.*]] = shufflevector <16 x float> %[[T_6]], <16 x float> undef, <16 x i32> <{{(i32 0(, )?)+}}>
; CHECK-NEXT: %[[ACC_2:.*]] = call <16 x float> @llvm.fma.v16f32(<16 x float> %[[T_7]], <16 x float> %[[T]], <16 x float> %[[SUM_2]])
; CHECK-NEXT: %[[K_NEXT:.*]] = add i64 %[[K]], 1
; CHECK-NEXT: %[[MORE:.*]] = icmp ult i64 %[[K_NEXT]], 9
; CHECK-NEXT: br i1 %[[MORE]], label %loop, label %end
; CHECK: end:
; CHECK-NEXT: store <16 x float> %[[ACC_1]], ptr %c, align 4
; CHECK-NEXT: %[[T_8:.*]] = getelementptr inbounds float, ptr %c, i64 16
; CHECK-NEXT: store <16 x float> %[[ACC_2]], ptr %[[T_8]], align 4
; CHECK-NEXT: ret void
; CHECK-NEXT: }

define void @f(ptr %c, ptr %a, ptr %b) "tlx-stage"="tiles" {
entry:
  br label %loop

loop:
  %k = phi i64 [ 0, %entry ], [ %k.next, %loop ]
  %sum = phi <32 x float> [ zeroinitializer, %entry ], [ %next, %loop ]
  %acc = call token @llvm.tensor.typeinfo(<32 x float> %sum, <2 x i32> <i32 2, i32 16>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
  %ak.i = mul i64 %k, 1
  %ak = getelementptr float, ptr %a, i64 %ak.i
  %bk.i = mul i64 %k, 16
  %bk = getelementptr float, ptr %b, i64 %bk.i
  %lhs = call token @llvm.tensor.load(ptr elementtype(float) %ak, <2 x i32> <i32 2, i32 1>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 9>)
  %rhs = call token @llvm.tensor.load(ptr elementtype(float) %bk, <2 x i32> <i32 1, i32 16>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 0>)
  %next = call <32 x float> @llvm.tensor.smma(token %acc, token %lhs, token %rhs)
  %k.next = add i64 %k, 1
  %more = icmp ult i64 %k.next, 9
  br i1 %more, label %loop, label %end

end:
  %out = call token @llvm.tensor.typeinfo(<32 x float> %next, <2 x i32> <i32 2, i32 16>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
  call void @llvm.tensor.store(ptr %c, token %out, <2 x i32> <i32 0, i32 0>)
  ret void
}
