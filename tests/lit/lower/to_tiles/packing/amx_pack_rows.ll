; Where rows of B are far apart, panels of a block are packed together, to read long runs of each row: 16 rows at a time,
; as the hardware prefetcher follows no more pages than 32.
;
; RUN: grep -v '^;' %s | tlx-lower - -o - --target=amx --stop-after=to-tiles | FileCheck %s

; CHECK-LABEL: define internal void @tlx.matmul.64x1056x64.bf16.bf16.f32(
; CHECK:       kp.loop:
; CHECK:       rp.loop:
; CHECK-NEXT:    %[[PART:.*]] = phi i64
; CHECK-NEXT:    %[[ROW:.*]] = mul i64 %[[PART]], 16
; CHECK:         mul i64 %{{.*}}, 1056
; CHECK:       jp.loop:
; CHECK:         %[[OFFSET:.*]] = mul i64 %[[ROW]], 16
; CHECK-NEXT:    getelementptr inbounds bfloat, ptr %{{.*}}, i64 %[[OFFSET]]
; CHECK:         icmp slt i64 %{{.*}}, 2
; CHECK:       t.loop:
define void @f(ptr noalias %c, ptr %a, ptr %b) {
  %lhs = call token @llvm.tensor.load(ptr elementtype(bfloat) %a, <2 x i32> <i32 64, i32 64>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %rhs = call token @llvm.tensor.load(ptr elementtype(bfloat) %b, <2 x i32> <i32 64, i32 1056>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <67584 x float> @llvm.tensor.matmul(token %lhs, token %rhs)
  %t = call token @llvm.tensor.typeinfo(<67584 x float> %m, <2 x i32> <i32 64, i32 1056>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}
