; A large B is copied into panels [panel][k][48], as many as fit half of L2: here by a knob, as it pays only
; with many rows. The panels come from the heap, 64-byte aligned; the program traps if memory is exhausted.
;
; RUN: grep -v '^;' %s | tlx-lower - -o - --target=avx512 --knobs=pack_b=true --stop-after=to-tiles | FileCheck %s

; CHECK-LABEL: define internal void @tlx.matmul.32x1024x1024.f32.f32.f32(ptr noalias %c, ptr %a, ptr %b) nounwind noinline "tlx-stage"="tiles" "target-features"="+avx512f,+avx512bw,+avx512dq,+avx512vl,+avx512bf16,+avx512vnni,+f16c,+fma" {
; CHECK-NEXT: entry:
; CHECK-NEXT: %[[SCRATCH_HEAP:.*]] = call noalias ptr @malloc(i64 393280)
; CHECK-NEXT: %[[T:.*]] = icmp eq ptr %[[SCRATCH_HEAP]], null
; CHECK-NEXT: br i1 %[[T]], label %out.of.memory, label %allocated
; CHECK: out.of.memory:
; CHECK-NEXT: call void @llvm.trap()
; CHECK: allocated:
; CHECK-NEXT: %[[T_1:.*]] = ptrtoint ptr %[[SCRATCH_HEAP]] to i64
; CHECK-NEXT: %[[T_2:.*]] = sub i64 0, %[[T_1]]
; CHECK-NEXT: %[[T_3:.*]] = and i64 %[[T_2]], 63
; CHECK-NEXT: %[[T_4:.*]] = getelementptr inbounds i8, ptr %[[SCRATCH_HEAP]], i64 %[[T_3]]
; CHECK: jc.loop:
; CHECK-NEXT: %[[JC:.*]] = phi i64 [ 0, %allocated ], [ %{{.*}}, %jr.end ]
; CHECK: %[[COLUMN:.*]] = mul i64 %[[JC]], 48
; CHECK: jp.loop:
; CHECK-NEXT: %[[JP:.*]] = phi i64 [ 0, %jc.loop ], [ %{{.*}}, %k.end ]
; CHECK-NEXT: %[[T_5:.*]] = mul i64 %[[JP]], 48
; CHECK-NEXT: %[[T_55:.*]] = add i64 %[[COLUMN]], %[[T_5]]
; CHECK-NEXT: %[[T_6:.*]] = getelementptr inbounds float, ptr %b, i64 %[[T_55]]
; CHECK-NEXT: %[[T_7:.*]] = mul i64 %[[JP]], 49152
; CHECK-NEXT: %[[T_8:.*]] = getelementptr inbounds float, ptr %[[T_4]], i64 %[[T_7]]
; CHECK-NEXT: br label %k.loop
; CHECK: k.loop:
; CHECK-NEXT: %[[K:.*]] = phi i64 [ 0, %jp.loop ], [ %{{.*}}, %k.loop ]
; CHECK-NEXT: %[[T_9:.*]] = mul i64 %[[K]], 1024
; CHECK-NEXT: %[[T_10:.*]] = getelementptr inbounds float, ptr %[[T_6]], i64 %[[T_9]]
; CHECK-NEXT: %[[B_1:.*]] = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %[[T_10]], <2 x i32> <i32 1, i32 48>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 1024>)
; CHECK-NEXT: %[[B_ROWS:.*]] = call <48 x float> @llvm.tensor.tovector.v48f32(token %[[B_1]])
; CHECK-NEXT: %[[B_PACKED:.*]] = call token @llvm.tensor.typeinfo.v48f32.v2i32(<48 x float> %[[B_ROWS]], <2 x i32> <i32 1, i32 48>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT: %[[T_11:.*]] = mul i64 %[[K]], 48
; CHECK-NEXT: %[[T_12:.*]] = getelementptr inbounds float, ptr %[[T_8]], i64 %[[T_11]]
; CHECK-NEXT: call void @llvm.tensor.store.p0.v2i32(ptr %[[T_12]], token %[[B_PACKED]], <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT: %[[K_NEXT:.*]] = add i64 %[[K]], 1
; CHECK-NEXT: %[[T_13:.*]] = icmp slt i64 %[[K_NEXT]], 1024
; CHECK-NEXT: br i1 %[[T_13]], label %k.loop, label %k.end
; CHECK: k.end:
; CHECK: jr.loop:
; CHECK: ir.loop:
; CHECK: part.loop:
; CHECK-NEXT: %[[PART:.*]] = phi i64 [ 0, %ir.loop ], [ %{{.*}}, %k.end.1 ]
; CHECK-NEXT: %[[ACC:.*]] = phi <384 x float> [ zeroinitializer, %ir.loop ], [ %{{.*}}, %k.end.1 ]
; CHECK-NEXT: %[[BEGIN:.*]] = mul i64 %[[PART]], 128
; CHECK: k.loop.1:
; CHECK-NEXT: %{{.*}} = phi i64 [ %[[BEGIN]], %part.loop ], [ %{{.*}}, %k.loop.1 ]
; CHECK-NEXT: %{{.*}} = phi <384 x float> [ %[[ACC]], %part.loop ], [ %{{.*}}, %k.loop.1 ]
; CHECK: call void @free(ptr %[[SCRATCH_HEAP]])
; CHECK-NEXT: ret void

define void @f(ptr noalias %c, ptr %a, ptr %b) {
  %lhs = call token @llvm.tensor.load(ptr elementtype(float) %a, <2 x i32> <i32 32, i32 1024>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %rhs = call token @llvm.tensor.load(ptr elementtype(float) %b, <2 x i32> <i32 1024, i32 1024>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <32768 x float> @llvm.tensor.matmul(token %lhs, token %rhs)
  %t = call token @llvm.tensor.typeinfo(<32768 x float> %m, <2 x i32> <i32 32, i32 1024>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}
