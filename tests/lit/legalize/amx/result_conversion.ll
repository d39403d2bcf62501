; Sums that are converted after the loop pass through scratch memory, row by row.
;
; RUN: grep -v '^;' %s | tlx-lower - -o - --target=amx --no-request-permission | FileCheck %s --implicit-check-not=llvm.tensor.

; CHECK-COUNT-4: tdpbssd
; CHECK: call void @llvm.x86.tilestored64(i8 {{[0-7]}}, ptr %[[SUMS:.*]], i64 128)
; CHECK-COUNT-3: tilestored64
; CHECK: er.loop:
; CHECK: getelementptr inbounds i32, ptr %[[SUMS]],
; CHECK: trunc <16 x i32> %{{.*}} to <16 x i16>

define void @f(ptr noalias %c, ptr %a, ptr %b) {
  %lhs = call token @llvm.tensor.load(ptr elementtype(i8) %a, <2 x i32> <i32 32, i32 64>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %rhs = call token @llvm.tensor.load(ptr elementtype(i8) %b, <2 x i32> <i32 64, i32 32>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <1024 x i16> @llvm.tensor.matmul(token %lhs, token %rhs)
  %t = call token @llvm.tensor.typeinfo(<1024 x i16> %m, <2 x i32> <i32 32, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}
