; A padded tile passes through scratch memory: only its data is stored to C, with masks.
;
;     32x32 with 12 rows and 27 columns of data
;
; RUN: grep -v '^;' %s | tlx-lower - -o - --target=amx --no-request-permission | FileCheck %s --implicit-check-not=llvm.tensor.

; CHECK: %[[TILES:.*]] = alloca [4096 x i8], align 64
; CHECK: end:
; CHECK-NEXT: call void @llvm.x86.tilestored64(i8 {{[0-7]}}, ptr %[[TILES]], i64 128)
; CHECK-NEXT: %[[T_2:.*]] = getelementptr inbounds i8, ptr %[[TILES]], i64 64
; CHECK-NEXT: call void @llvm.x86.tilestored64(i8 {{[0-7]}}, ptr %[[T_2]], i64 128)
; CHECK-NEXT: %[[T_3:.*]] = getelementptr inbounds i8, ptr %[[TILES]], i64 2048
; CHECK-NEXT: call void @llvm.x86.tilestored64(i8 {{[0-7]}}, ptr %[[T_3]], i64 128)
; CHECK-NEXT: %[[T_4:.*]] = getelementptr inbounds i8, ptr %[[TILES]], i64 2112
; CHECK-NEXT: call void @llvm.x86.tilestored64(i8 {{[0-7]}}, ptr %[[T_4]], i64 128)
; CHECK-NEXT: %{{.*}} = load <16 x float>, ptr %[[TILES]], align 4
; CHECK-NEXT: %[[T_6:.*]] = getelementptr inbounds float, ptr %[[TILES]], i64 16
; CHECK-NEXT: %{{.*}} = load <16 x float>, ptr %[[T_6]], align 4
; CHECK-NEXT: %[[T_8:.*]] = getelementptr inbounds float, ptr %[[TILES]], i64 32
; CHECK-NEXT: %{{.*}} = load <16 x float>, ptr %[[T_8]], align 4
; CHECK: call void @llvm.masked.store.v16f32.p0(<16 x float> %{{.*}}, ptr %{{.*}}, i32 4, <16 x i1> <{{(i1 true, ){11}(i1 false(, )?)+}}>)
; CHECK: getelementptr inbounds float, ptr %c, i64 297
; CHECK-NOT: getelementptr inbounds float, ptr %c, i64 324
; CHECK: ret void

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
  %out = call token @llvm.tensor.typeinfo(<1024 x float> %next, <2 x i32> <i32 32, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 20, i32 5>)
  call void @llvm.tensor.store(ptr %c, token %out, <2 x i32> <i32 0, i32 27>)
  ret void
}
