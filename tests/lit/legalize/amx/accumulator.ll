; Accumulators that start with a tile of C are loaded from memory, as rows of 64 bytes at the pitch of C.
;
; RUN: grep -v '^;' %s | tlx-lower - -o - --target=amx --no-request-permission | FileCheck %s --implicit-check-not=llvm.tensor.

; CHECK: call void @llvm.x86.tileloadd64(i8 0, ptr %{{.*}}, i64 160)
; CHECK-NEXT: %[[T_132:.*]] = getelementptr inbounds i8, ptr %{{.*}}, i64 64
; CHECK-NEXT: call void @llvm.x86.tileloadd64(i8 1, ptr %[[T_132]], i64 160)
; CHECK-NEXT: %[[T_133:.*]] = getelementptr inbounds i8, ptr %{{.*}}, i64 2560
; CHECK-NEXT: call void @llvm.x86.tileloadd64(i8 2, ptr %[[T_133]], i64 160)
; CHECK-NEXT: %[[T_134:.*]] = getelementptr inbounds i8, ptr %{{.*}}, i64 2624
; CHECK-NEXT: call void @llvm.x86.tileloadd64(i8 3, ptr %[[T_134]], i64 160)
; CHECK: loop:
; CHECK: call void @llvm.x86.tdpbusd(i8 0, i8 {{[4-7]}}, i8 {{[4-7]}})
; CHECK: call void @llvm.x86.tdpbusd(i8 1, i8 {{[4-7]}}, i8 {{[4-7]}})
; CHECK: call void @llvm.x86.tdpbusd(i8 2, i8 {{[4-7]}}, i8 {{[4-7]}})
; CHECK: call void @llvm.x86.tdpbusd(i8 3, i8 {{[4-7]}}, i8 {{[4-7]}})

define void @f(ptr %c, ptr %a, ptr %b) "tlx-stage"="tiles" {
entry:
  %init = call token @llvm.tensor.load(ptr elementtype(i32) %c, <2 x i32> <i32 32, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 40>)
  %c.old = call <1024 x i32> @llvm.tensor.tovector(token %init)
  br label %loop

loop:
  %k = phi i64 [ 0, %entry ], [ %k.next, %loop ]
  %sum = phi <1024 x i32> [ %c.old, %entry ], [ %next, %loop ]
  %acc = call token @llvm.tensor.typeinfo(<1024 x i32> %sum, <2 x i32> <i32 32, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
  %ak.i = mul i64 %k, 64
  %ak = getelementptr i8, ptr %a, i64 %ak.i
  %bk.i = mul i64 %k, 2048
  %bk = getelementptr i8, ptr %b, i64 %bk.i
  %lhs = call token @llvm.tensor.load(ptr elementtype(i8) %ak, <2 x i32> <i32 32, i32 64>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 192>)
  %rhs.packed = call token @llvm.tensor.load(ptr elementtype(i8) %bk, <3 x i32> <i32 16, i32 32, i32 4>, <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> <i32 0, i32 0, i32 0>, <3 x i32> <i32 0, i32 0, i32 0>)
  %rhs.flat = call <2048 x i8> @llvm.tensor.reshape.permute(token %rhs.packed, <3 x i32> <i32 0, i32 2, i32 1>, <2 x i32> <i32 64, i32 32>)
  %rhs = call token @llvm.tensor.typeinfo(<2048 x i8> %rhs.flat, <2 x i32> <i32 64, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
  %next = call <1024 x i32> @llvm.tensor.usmma(token %acc, token %lhs, token %rhs)
  %k.next = add i64 %k, 1
  %more = icmp ult i64 %k.next, 3
  br i1 %more, label %loop, label %end

end:
  %out = call token @llvm.tensor.typeinfo(<1024 x i32> %next, <2 x i32> <i32 32, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
  call void @llvm.tensor.store(ptr %c, token %out, <2 x i32> <i32 0, i32 0>)
  ret void
}
