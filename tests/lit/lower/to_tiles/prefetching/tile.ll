; If A, B and C exceed L2, K is split into as many parts as a tile has rows. Each part prefetches a row of the
; next tile of C, and each of its steps some bytes of a row of A in the next block of rows; nothing is spilled.
;
;     tiles of 6x32 and 5x32; 512 KB of packed B are 128 columns, 4 panels: 4 KB of a row of A are 1 KB each, 13 bytes a step
;
; RUN: grep -v '^;' %s | tlx-lower - -o - --target=avx512 --tile=6x32 --stop-after=to-tiles --remarks=%t.remarks | FileCheck %s
; RUN: FileCheck %s --check-prefix=REMARKS < %t.remarks
; RUN: grep -v '^;' %s | tlx-lower - --emit=asm --target=avx512 --tile=6x32 -o - | FileCheck %s --check-prefix=ASM

; REMARKS: remark: matmul 512x512x512 double:{{.*}}; B prefetched 8 steps ahead; C and A of the next tiles prefetched; tile=6x32

; The next tile is in the next panel, or the first one in the next block of rows.
; CHECK-LABEL: define internal void @tlx.matmul.512x512x512.f64.f64.f64(
; CHECK:       jr.loop:
; CHECK-NEXT:    %[[JR:.*]] = phi i64
; CHECK:         %[[BESIDE:.*]] = add i64 %[[JR]], 1
; CHECK-NEXT:    %[[LEAVES:.*]] = icmp eq i64 %[[BESIDE]], 4
; CHECK-NEXT:    %[[BELOW:.*]] = select i1 %[[LEAVES]], i64 1, i64 0
; CHECK-NEXT:    %[[LEAVES_1:.*]] = icmp eq i64 %[[BESIDE]], 4
; CHECK-NEXT:    %[[RIGHT:.*]] = select i1 %[[LEAVES_1]], i64 0, i64 %[[BESIDE]]
; CHECK-NEXT:    %{{.*}} = mul i64 %[[BELOW]], 6
; CHECK-NEXT:    %{{.*}} = mul i64 %[[RIGHT]], 32
; CHECK:         %[[SHARE:.*]] = mul i64 %[[JR]], 128
; CHECK:       part.loop:
; CHECK-NEXT:    %[[PART:.*]] = phi i64 [ 0, %jr.loop ], [ %{{.*}}, %k.end{{.*}} ]
; CHECK:         %[[BEGIN:.*]] = mul i64 %[[PART]], 85
; CHECK-NEXT:    %[[ROW:.*]] = mul i64 %[[PART]], 4096
; CHECK:         getelementptr i8, ptr %c, i64
; CHECK-NEXT:    call void @llvm.prefetch.p0(ptr %{{.*}}, i32 0, i32 2, i32 1)
; CHECK-COUNT-3: call void @llvm.prefetch.p0(ptr %{{.*}}, i32 0, i32 2, i32 1)
; CHECK:         %[[END:.*]] = add i64 %[[BEGIN]], 85
; CHECK-NEXT:    br label %k.loop
; CHECK:         call void @llvm.prefetch.p0(ptr %{{.*}}, i32 0, i32 3, i32 1)
; CHECK:         getelementptr i8, ptr %a, i64
; CHECK-NEXT:    call void @llvm.prefetch.p0(ptr %{{.*}}, i32 0, i32 2, i32 1)
; CHECK:         icmp slt i64 %{{.*}}, %[[END]]
; CHECK:         icmp slt i64 %{{.*}}, 6
; CHECK:         phi i64 [ 510, %part.end ]

; ASM:           vfmadd231pd
; ASM-COUNT-23:  vfmadd
; ASM-NOT:       rsp
; ASM:           prefetcht0
; ASM:           prefetcht1
; ASM-NOT:       rsp
; ASM:           {{j(l|ne)}} .LBB

define void @f(ptr noalias %c, ptr %a, ptr %b) {
  %lhs = call token @llvm.tensor.load(ptr elementtype(double) %a, <2 x i32> <i32 512, i32 512>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %rhs = call token @llvm.tensor.load(ptr elementtype(double) %b, <2 x i32> <i32 512, i32 512>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <262144 x double> @llvm.tensor.matmul(token %lhs, token %rhs)
  %t = call token @llvm.tensor.typeinfo(<262144 x double> %m, <2 x i32> <i32 512, i32 512>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}
