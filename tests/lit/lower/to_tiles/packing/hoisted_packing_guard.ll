; B is not packed before a loop that may not run: B need not be readable then. Where the block before a loop leads to the
; loop alone, it is.
;
; RUN: grep -v "^;" %s | tlx-lower - -o - --target=avx2 --start-after=to-2d --stop-after=to-tiles | FileCheck %s

; CHECK-LABEL: define void @guarded(
; CHECK-NOT:     .pack(
; CHECK:         ret void
define void @guarded(ptr noalias %c, ptr noalias %a, ptr noalias %b, i64 %n) "tlx-stage"="2d" {
entry:
  %some = icmp sgt i64 %n, 0
  br i1 %some, label %rows, label %end

rows:
  %i = phi i64 [ 0, %entry ], [ %i.next, %rows ]
  %a.offset = mul i64 %i, 32768
  %c.offset = mul i64 %i, 512
  %a.row = getelementptr inbounds bfloat, ptr %a, i64 %a.offset
  %c.row = getelementptr inbounds float, ptr %c, i64 %c.offset
  %lhs = call token @llvm.tensor.load(ptr elementtype(bfloat) %a.row, <2 x i32> <i32 16, i32 2048>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> <i32 0, i32 2048>)
  %rhs = call token @llvm.tensor.load(ptr elementtype(bfloat) %b, <2 x i32> <i32 2048, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> <i32 0, i32 32>)
  %p = call <512 x float> @llvm.tensor.matmul(token %lhs, token %rhs)
  %t = call token @llvm.tensor.typeinfo(<512 x float> %p, <2 x i32> <i32 16, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c.row, token %t, <2 x i32> <i32 0, i32 32>)
  %i.next = add i64 %i, 1
  %more = icmp slt i64 %i.next, %n
  br i1 %more, label %rows, label %end, !tlx.independent !{}

end:
  ret void
}

; CHECK-LABEL: define void @entered(
; CHECK:         call void @tlx.matmul.16x32x2048.bf16.bf16.f32.pack(
; CHECK:         call void @tlx.nest.entered(
define void @entered(ptr noalias %c, ptr noalias %a, ptr noalias %b, i64 %n) "tlx-stage"="2d" {
entry:
  br label %rows

rows:
  %i = phi i64 [ 0, %entry ], [ %i.next, %rows ]
  %a.offset = mul i64 %i, 32768
  %c.offset = mul i64 %i, 512
  %a.row = getelementptr inbounds bfloat, ptr %a, i64 %a.offset
  %c.row = getelementptr inbounds float, ptr %c, i64 %c.offset
  %lhs = call token @llvm.tensor.load(ptr elementtype(bfloat) %a.row, <2 x i32> <i32 16, i32 2048>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> <i32 0, i32 2048>)
  %rhs = call token @llvm.tensor.load(ptr elementtype(bfloat) %b, <2 x i32> <i32 2048, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> <i32 0, i32 32>)
  %p = call <512 x float> @llvm.tensor.matmul(token %lhs, token %rhs)
  %t = call token @llvm.tensor.typeinfo(<512 x float> %p, <2 x i32> <i32 16, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c.row, token %t, <2 x i32> <i32 0, i32 32>)
  %i.next = add i64 %i, 1
  %more = icmp slt i64 %i.next, %n
  br i1 %more, label %rows, label %end, !tlx.independent !{}

end:
  ret void
}
