; Multiply-adds are one instruction: `llvm.fma` on 256-bit registers.
;
; RUN: grep -v '^;' %s | tlx-lower - -o - --target=avx2 | FileCheck %s --implicit-check-not=llvm.tensor.

; CHECK-LABEL: define void @f(ptr %c, ptr %a, ptr %b) nounwind noinline "no-builtins" "target-features"="+avx2,+fma,+f16c" "min-legal-vector-width"="256" "prefer-vector-width"="256" {
; CHECK-NEXT: entry:
; CHECK-NEXT: br label %loop
; CHECK: loop:
; CHECK-NEXT: %[[K:.*]] = phi i64 [ 0, %entry ], [ %{{.*}}, %loop ]
; CHECK-NEXT: %[[SUM_1:.*]] = phi <8 x float> [ zeroinitializer, %entry ], [ %{{.*}}, %loop ]
; CHECK-NEXT: %[[SUM_2:.*]] = phi <8 x float> [ zeroinitializer, %entry ], [ %{{.*}}, %loop ]
; CHECK-NEXT: %[[AK_I:.*]] = mul i64 %[[K]], 1
; CHECK-NEXT: %[[AK:.*]] = getelementptr float, ptr %a, i64 %[[AK_I]]
; CHECK-NEXT: %[[BK_I:.*]] = mul i64 %[[K]], 16
; CHECK-NEXT: %[[BK:.*]] = getelementptr float, ptr %b, i64 %[[BK_I]]
; CHECK-NEXT: %[[T:.*]] = load float, ptr %[[AK]], align 4
; CHECK-NEXT: %[[T_1:.*]] = insertelement <8 x float> undef, float %[[T]], i32 0
; CHECK-NEXT: %[[T_2:.*]] = shufflevector <8 x float> %[[T_1]], <8 x float> undef, <8 x i32> <{{(i32 0(, )?)+}}>
; CHECK-NEXT: %[[T_3:.*]] = load <8 x float>, ptr %[[BK]], align 4
; CHECK-NEXT: %[[ACC_1:.*]] = call <8 x float> @llvm.fma.v8f32(<8 x float> %[[T_2]], <8 x float> %[[T_3]], <8 x float> %[[SUM_1]])
; CHECK-NEXT: %[[T_4:.*]] = getelementptr inbounds float, ptr %[[BK]], i64 8
; CHECK-NEXT: %[[T_5:.*]] = load <8 x float>, ptr %[[T_4]], align 4
; CHECK-NEXT: %[[ACC_2:.*]] = call <8 x float> @llvm.fma.v8f32(<8 x float> %[[T_2]], <8 x float> %[[T_5]], <8 x float> %[[SUM_2]])
; CHECK-NEXT: %[[K_NEXT:.*]] = add i64 %[[K]], 1
; CHECK-NEXT: %[[MORE:.*]] = icmp ult i64 %[[K_NEXT]], 9
; CHECK-NEXT: br i1 %[[MORE]], label %loop, label %end
; CHECK: end:
; CHECK-NEXT: store <8 x float> %[[ACC_1]], ptr %c, align 4
; CHECK-NEXT: %[[T_6:.*]] = getelementptr inbounds float, ptr %c, i64 8
; CHECK-NEXT: store <8 x float> %[[ACC_2]], ptr %[[T_6]], align 4
; CHECK-NEXT: ret void
; CHECK-NEXT: }

define void @f(ptr %c, ptr %a, ptr %b) "tlx-stage"="tiles" {
entry:
  br label %loop

loop:
  %k = phi i64 [ 0, %entry ], [ %k.next, %loop ]
  %sum = phi <16 x float> [ zeroinitializer, %entry ], [ %next, %loop ]
  %acc = call token @llvm.tensor.typeinfo(<16 x float> %sum, <2 x i32> <i32 1, i32 16>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
  %ak.i = mul i64 %k, 1
  %ak = getelementptr float, ptr %a, i64 %ak.i
  %bk.i = mul i64 %k, 16
  %bk = getelementptr float, ptr %b, i64 %bk.i
  %lhs = call token @llvm.tensor.load(ptr elementtype(float) %ak, <2 x i32> <i32 1, i32 1>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 9>)
  %rhs = call token @llvm.tensor.load(ptr elementtype(float) %bk, <2 x i32> <i32 1, i32 16>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 0>)
  %next = call <16 x float> @llvm.tensor.smma(token %acc, token %lhs, token %rhs)
  %k.next = add i64 %k, 1
  %more = icmp ult i64 %k.next, 9
  br i1 %more, label %loop, label %end

end:
  %out = call token @llvm.tensor.typeinfo(<16 x float> %next, <2 x i32> <i32 1, i32 16>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
  call void @llvm.tensor.store(ptr %c, token %out, <2 x i32> <i32 0, i32 0>)
  ret void
}
