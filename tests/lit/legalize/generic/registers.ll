; A flattened tile becomes registers of 128 bits, row by row, and a phi of a tile becomes a phi per register. The smaller set of
; operands is loaded first and kept: two rows of A, while the registers of B are streamed. `llvm.fmuladd` leaves it to
; the backend whether multiply and add are one instruction.
;
;     2x8 floats = 4 registers
;
; RUN: grep -v '^;' %s | tlx-lower - -o - --target=generic | FileCheck %s --implicit-check-not=llvm.tensor.

; CHECK-LABEL: define void @f(ptr %c, ptr %a, ptr %b) nounwind noinline "no-builtins" {
; CHECK-NEXT: entry:
; CHECK-NEXT: br label %loop
; CHECK: loop:
; CHECK-NEXT: %[[K:.*]] = phi i64 [ 0, %entry ], [ %{{.*}}, %loop ]
; CHECK-NEXT: %[[SUM_1:.*]] = phi <4 x float> [ zeroinitializer, %entry ], [ %{{.*}}, %loop ]
; CHECK-NEXT: %[[SUM_2:.*]] = phi <4 x float> [ zeroinitializer, %entry ], [ %{{.*}}, %loop ]
; CHECK-NEXT: %[[SUM_3:.*]] = phi <4 x float> [ zeroinitializer, %entry ], [ %{{.*}}, %loop ]
; CHECK-NEXT: %[[SUM_4:.*]] = phi <4 x float> [ zeroinitializer, %entry ], [ %{{.*}}, %loop ]
; CHECK-NEXT: %[[AK_I:.*]] = mul i64 %[[K]], 1
; CHECK-NEXT: %[[AK:.*]] = getelementptr float, ptr %a, i64 %[[AK_I]]
; CHECK-NEXT: %[[BK_I:.*]] = mul i64 %[[K]], 8
; CHECK-NEXT: %[[BK:.*]] = getelementptr float, ptr %b, i64 %[[BK_I]]
; CHECK-NEXT: %[[T:.*]] = load float, ptr %[[AK]], align 4
; CHECK-NEXT: %[[T_1:.*]] = insertelement <4 x float> undef, float %[[T]], i32 0
; CHECK-NEXT: %[[T_2:.*]] = shufflevector <4 x float> %[[T_1]], <4 x float> undef, <4 x i32> <i32 0, i32 0, i32 0, i32 0>
; CHECK-NEXT: %[[T_3:.*]] = getelementptr inbounds float, ptr %[[AK]], i64 9
; CHECK-NEXT: %[[T_4:.*]] = load float, ptr %[[T_3]], align 4
; CHECK-NEXT: %[[T_5:.*]] = insertelement <4 x float> undef, float %[[T_4]], i32 0
; CHECK-NEXT: %[[T_6:.*]] = shufflevector <4 x float> %[[T_5]], <4 x float> undef, <4 x i32> <i32 0, i32 0, i32 0, i32 0>
; CHECK-NEXT: %[[T_7:.*]] = load <4 x float>, ptr %[[BK]], align 4
; CHECK-NEXT: %[[ACC_1:.*]] = call <4 x float> @llvm.fmuladd.v4f32(<4 x float> %[[T_2]], <4 x float> %[[T_7]], <4 x float> %[[SUM_1]])
; CHECK-NEXT: %[[ACC_2:.*]] = call <4 x float> @llvm.fmuladd.v4f32(<4 x float> %[[T_6]], <4 x float> %[[T_7]], <4 x float> %[[SUM_3]])
; CHECK-NEXT: %[[T_8:.*]] = getelementptr inbounds float, ptr %[[BK]], i64 4
; CHECK-NEXT: %[[T_9:.*]] = load <4 x float>, ptr %[[T_8]], align 4
; CHECK-NEXT: %[[ACC_3:.*]] = call <4 x float> @llvm.fmuladd.v4f32(<4 x float> %[[T_2]], <4 x float> %[[T_9]], <4 x float> %[[SUM_2]])
; CHECK-NEXT: %[[ACC_4:.*]] = call <4 x float> @llvm.fmuladd.v4f32(<4 x float> %[[T_6]], <4 x float> %[[T_9]], <4 x float> %[[SUM_4]])
; CHECK-NEXT: %[[K_NEXT:.*]] = add i64 %[[K]], 1
; CHECK-NEXT: %[[MORE:.*]] = icmp ult i64 %[[K_NEXT]], 9
; CHECK-NEXT: br i1 %[[MORE]], label %loop, label %end
; CHECK: end:
; CHECK-NEXT: store <4 x float> %[[ACC_1]], ptr %c, align 4
; CHECK-NEXT: %[[T_10:.*]] = getelementptr inbounds float, ptr %c, i64 4
; CHECK-NEXT: store <4 x float> %[[ACC_3]], ptr %[[T_10]], align 4
; CHECK-NEXT: %[[T_11:.*]] = getelementptr inbounds float, ptr %c, i64 8
; CHECK-NEXT: store <4 x float> %[[ACC_2]], ptr %[[T_11]], align 4
; CHECK-NEXT: %[[T_12:.*]] = getelementptr inbounds float, ptr %c, i64 12
; CHECK-NEXT: store <4 x float> %[[ACC_4]], ptr %[[T_12]], align 4
; CHECK-NEXT: ret void
; CHECK-NEXT: }

define void @f(ptr %c, ptr %a, ptr %b) "tlx-stage"="tiles" {
entry:
  br label %loop

loop:
  %k = phi i64 [ 0, %entry ], [ %k.next, %loop ]
  %sum = phi <16 x float> [ zeroinitializer, %entry ], [ %next, %loop ]
  %acc = call token @llvm.tensor.typeinfo(<16 x float> %sum, <2 x i32> <i32 2, i32 8>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
  %ak.i = mul i64 %k, 1
  %ak = getelementptr float, ptr %a, i64 %ak.i
  %bk.i = mul i64 %k, 8
  %bk = getelementptr float, ptr %b, i64 %bk.i
  %lhs = call token @llvm.tensor.load(ptr elementtype(float) %ak, <2 x i32> <i32 2, i32 1>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 9>)
  %rhs = call token @llvm.tensor.load(ptr elementtype(float) %bk, <2 x i32> <i32 1, i32 8>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 0>)
  %next = call <16 x float> @llvm.tensor.smma(token %acc, token %lhs, token %rhs)
  %k.next = add i64 %k, 1
  %more = icmp ult i64 %k.next, 9
  br i1 %more, label %loop, label %end

end:
  %out = call token @llvm.tensor.typeinfo(<16 x float> %next, <2 x i32> <i32 2, i32 8>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
  call void @llvm.tensor.store(ptr %c, token %out, <2 x i32> <i32 0, i32 0>)
  ret void
}
