; A 32x32 register tile is a 2x2 grid of tile registers, each of which starts with its own `tilezero`; a constant has
; their shapes, 16 rows of 64 bytes. A step of K loads each tile of A (32x32) and B (16x32x2) right before
; its first use and multiplies four times.
;
;     C00 C01     A0
;     C10 C11     A1     B0 B1
;
; RUN: grep -v '^;' %s | tlx-lower - -o - --target=amx --no-request-permission | FileCheck %s --implicit-check-not=llvm.tensor.

; CHECK-LABEL: define void @f(ptr %c, ptr %a, ptr %b) nounwind noinline "no-builtins" "target-features"="+avx512f,+avx512bw,+avx512dq,+avx512vl,+avx512bf16,+avx512vnni,+f16c,+fma,+avx512vbmi,+amx-tile,+amx-bf16,+amx-int8" "min-legal-vector-width"="512" "prefer-vector-width"="512" {
; CHECK-NEXT: entry:
; CHECK-NEXT: call void @llvm.x86.ldtilecfg(ptr @tlx.amx.tiles)
; CHECK-NEXT: call void @llvm.x86.tilezero(i8 0)
; CHECK-NEXT: call void @llvm.x86.tilezero(i8 1)
; CHECK-NEXT: call void @llvm.x86.tilezero(i8 2)
; CHECK-NEXT: call void @llvm.x86.tilezero(i8 3)
; CHECK-NEXT: br label %loop
; CHECK: loop:
; CHECK-NEXT: %[[K:.*]] = phi i64 [ 0, %entry ], [ %{{.*}}, %loop ]
; CHECK-NEXT: %[[AK_I:.*]] = mul i64 %[[K]], 32
; CHECK-NEXT: %[[AK:.*]] = getelementptr bfloat, ptr %a, i64 %[[AK_I]]
; CHECK-NEXT: %[[BK_I:.*]] = mul i64 %[[K]], 1024
; CHECK-NEXT: %[[BK:.*]] = getelementptr bfloat, ptr %b, i64 %[[BK_I]]
; CHECK-NEXT: call void @llvm.x86.tileloadd64(i8 4, ptr %[[BK]], i64 128)
; CHECK-NEXT: call void @llvm.x86.tileloadd64(i8 5, ptr %[[AK]], i64 192)
; CHECK-NEXT: call void @llvm.x86.tdpbf16ps(i8 0, i8 5, i8 4)
; CHECK-NEXT: %[[T:.*]] = getelementptr inbounds i8, ptr %[[BK]], i64 64
; CHECK-NEXT: call void @llvm.x86.tileloadd64(i8 6, ptr %[[T]], i64 128)
; CHECK-NEXT: call void @llvm.x86.tdpbf16ps(i8 1, i8 5, i8 6)
; CHECK-NEXT: %[[T_1:.*]] = getelementptr inbounds i8, ptr %[[AK]], i64 3072
; CHECK-NEXT: call void @llvm.x86.tileloadd64(i8 5, ptr %[[T_1]], i64 192)
; CHECK-NEXT: call void @llvm.x86.tdpbf16ps(i8 2, i8 5, i8 4)
; CHECK-NEXT: call void @llvm.x86.tdpbf16ps(i8 3, i8 5, i8 6)
; CHECK-NEXT: %[[K_NEXT:.*]] = add i64 %[[K]], 1
; CHECK-NEXT: %[[MORE:.*]] = icmp ult i64 %[[K_NEXT]], 3
; CHECK-NEXT: br i1 %[[MORE]], label %loop, label %end
; CHECK: end:
; CHECK-NEXT: call void @llvm.x86.tilestored64(i8 0, ptr %c, i64 128)
; CHECK-NEXT: %[[T_2:.*]] = getelementptr inbounds i8, ptr %c, i64 64
; CHECK-NEXT: call void @llvm.x86.tilestored64(i8 1, ptr %[[T_2]], i64 128)
; CHECK-NEXT: %[[T_3:.*]] = getelementptr inbounds i8, ptr %c, i64 2048
; CHECK-NEXT: call void @llvm.x86.tilestored64(i8 2, ptr %[[T_3]], i64 128)
; CHECK-NEXT: %[[T_4:.*]] = getelementptr inbounds i8, ptr %c, i64 2112
; CHECK-NEXT: call void @llvm.x86.tilestored64(i8 3, ptr %[[T_4]], i64 128)
; CHECK-NEXT: call void @llvm.x86.tilerelease()
; CHECK-NEXT: ret void
; CHECK-NEXT: }
; CHECK: @tlx.amx.tiles = private unnamed_addr constant [64 x i8] c"\01\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\40\00\40\00\40\00\40\00\40\00\40\00\40\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\10\10\10\10\10\10\10\00\00\00\00\00\00\00\00\00", align 64

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
