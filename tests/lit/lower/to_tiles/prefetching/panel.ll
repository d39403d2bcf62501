; If B is read unpacked and exceeds L2, the first row tile would wait for all of a panel. So
; row tiles prefetch the next panel: each of 16 tiles is cut into 8 parts of 2 pieces, each piece prefetches a row of 192 bytes,
; 12 with each of its 16 steps. The last tile of a panel prefetches the first rows of the next columns of C. Nothing is spilled.
;
; RUN: grep -v '^;' %s | tlx-lower - -o - --target=avx512 --tile=8x48 --stop-after=to-tiles --remarks=%t.remarks | FileCheck %s
; RUN: FileCheck %s --check-prefix=REMARKS < %t.remarks
; RUN: grep -v '^;' %s | tlx-lower - --emit=asm --target=avx512 --tile=8x48 -o - | FileCheck %s --check-prefix=ASM

; REMARKS: remark: matmul 128x3136x256 float:{{.*}}; C and B of the next tiles prefetched; tile=8x48

; CHECK-LABEL: define internal void @tlx.matmul.128x3136x256.f32.f32.f32(
; CHECK:       jc.loop:
; CHECK:         %[[COLUMN:.*]] = mul i64 %jc, 48
; CHECK:       ir.loop:
; CHECK-NEXT:    %[[IR:.*]] = phi i64
; CHECK:         %[[BESIDE:.*]] = mul i64 %[[RIGHT:.*]], 48
; CHECK-NEXT:    %[[ENDS:.*]] = icmp eq i64 %[[RIGHT]], 1
; CHECK-NEXT:    select i1 %[[ENDS]], i64 0, i64 %{{.*}}
; CHECK-NEXT:    add i64 %[[COLUMN]], %[[BESIDE]]
; CHECK:         %[[TOP:.*]] = mul i64 %[[IR]], 8
; CHECK-NEXT:    %[[FIRST:.*]] = mul i64 %[[TOP]], 2
; CHECK-NEXT:    %[[LESS:.*]] = icmp ult i64 %[[FIRST]], 240
; CHECK-NEXT:    select i1 %[[LESS]], i64 %[[FIRST]], i64 240
; CHECK:         add i64 %[[COLUMN]], 48
; CHECK:       part.loop:
; CHECK-NEXT:    %[[PART:.*]] = phi i64
; CHECK:         %[[BEGIN:.*]] = mul i64 %[[PART]], 32
; CHECK:         getelementptr i8, ptr %c, i64
; CHECK-COUNT-3: call void @llvm.prefetch.p0(ptr %{{.*}}, i32 0, i32 2, i32 1)
; CHECK:       piece.loop:
; CHECK-NEXT:    %[[PIECE:.*]] = phi i64
; CHECK:         %[[THERE:.*]] = mul i64 %[[PIECE]], 16
; CHECK-NEXT:    %[[START:.*]] = add i64 %[[BEGIN]], %[[THERE]]
; CHECK:         %[[FROM:.*]] = mul i64 %[[PART]], 2
; CHECK-NEXT:    %[[ROW:.*]] = add i64 %[[FROM]], %[[PIECE]]
; CHECK-NEXT:    mul i64 %[[ROW]], 12544
; CHECK:         %[[END:.*]] = add i64 %[[START]], 16
; CHECK:       k.loop:
; CHECK-NEXT:    %[[K:.*]] = phi i64 [ %[[START]], %piece.loop ]
; CHECK-COUNT-3: call void @llvm.prefetch.p0(ptr %{{.*}}, i32 0, i32 3, i32 1)
; CHECK:         %{{.*}} = mul i64 %[[K]], 12
; CHECK:         getelementptr i8, ptr %b, i64
; CHECK-NEXT:    call void @llvm.prefetch.p0(ptr %{{.*}}, i32 0, i32 2, i32 1)
; CHECK:         icmp slt i64 %{{.*}}, %[[END]]
; CHECK:         icmp slt i64 %{{.*}}, 2
; CHECK:         icmp slt i64 %{{.*}}, 8

; ASM:           vfmadd231ps
; ASM-COUNT-23:  vfmadd
; ASM-NOT:       rsp
; ASM-COUNT-3:   prefetcht0
; ASM-NEXT:      prefetcht1
; ASM-NOT:       rsp
; ASM:           {{j(l|ne)}} .LBB
define void @f(ptr noalias %c, ptr %a, ptr %b) {
  %lhs = call token @llvm.tensor.load(ptr elementtype(float) %a, <2 x i32> <i32 128, i32 256>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %rhs = call token @llvm.tensor.load(ptr elementtype(float) %b, <2 x i32> <i32 256, i32 3136>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <401408 x float> @llvm.tensor.matmul(token %lhs, token %rhs)
  %t = call token @llvm.tensor.typeinfo(<401408 x float> %m, <2 x i32> <i32 128, i32 3136>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}
