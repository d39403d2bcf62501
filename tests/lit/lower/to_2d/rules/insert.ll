; An inserted element is stored over the old one, without a copy of the vector, if the old vector has no other use.
;
; RUN: grep -v '^;' %s | tlx-lower - -o - --target=generic --stop-after=to-2d | FileCheck %s

; CHECK-LABEL: define void @loop(
; CHECK: call void @llvm.memcpy{{.*}}(ptr %v.buf, ptr %a, i64 32768
; CHECK-NEXT: br label %loop
; CHECK: loop:
; CHECK-NOT: memcpy
; CHECK: store float %x, ptr
; CHECK-NOT: memcpy
; CHECK: exit:
; CHECK-NEXT: call void @llvm.memcpy{{.*}}(ptr %c, ptr %v.buf, i64 32768
define void @loop(ptr noalias %a, ptr noalias %c, float %x) {
entry:
  %first = load <8192 x float>, ptr %a
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %v = phi <8192 x float> [ %first, %entry ], [ %w, %loop ]
  %w = insertelement <8192 x float> %v, float %x, i64 %i
  %next = add i64 %i, 3
  %again = icmp ult i64 %next, 8192
  br i1 %again, label %loop, label %exit
exit:
  store <8192 x float> %w, ptr %c
  ret void
}

; Insertions selected by a branch and by a select, in an inner loop, and with an early exit.
; CHECK-LABEL: define void @chosen(
; CHECK: call void @llvm.memset{{.*}}(ptr %v.buf, i8 0, i64 32768
; CHECK: outer:
; CHECK-NOT: mem
; CHECK: %selected = select i1 %odd, float %x, float %old
; CHECK-NOT: mem
; CHECK: exit:
; CHECK-NEXT: call void @llvm.memcpy{{.*}}(ptr %c, ptr %v.buf, i64 32768
define void @chosen(ptr noalias %c, float %x, i64 %n) {
entry:
  br label %outer
outer:
  %i = phi i64 [ 0, %entry ], [ %i.next, %latch ]
  %v = phi <8192 x float> [ zeroinitializer, %entry ], [ %w, %latch ]
  %bit = and i64 %i, 1
  %odd = icmp ne i64 %bit, 0
  %v1 = insertelement <8192 x float> %v, float %x, i64 %i
  %v2 = select i1 %odd, <8192 x float> %v1, <8192 x float> %v
  br i1 %odd, label %inner, label %join
inner:
  %j = phi i64 [ 0, %outer ], [ %j.next, %inner ]
  %u = phi <8192 x float> [ %v2, %outer ], [ %u2, %inner ]
  %e = extractelement <8192 x float> %u, i64 %j
  %u1 = insertelement <8192 x float> %u, float %e, i64 %i
  %u2 = insertelement <8192 x float> %u1, float %x, i32 17
  %j.next = add i64 %j, 1
  %more = icmp ult i64 %j.next, %i
  br i1 %more, label %inner, label %join
join:
  %w = phi <8192 x float> [ %v2, %outer ], [ %u2, %inner ]
  %enough = icmp eq i64 %i, %n
  br i1 %enough, label %exit, label %latch
latch:
  %i.next = add i64 %i, 1
  %again = icmp ult i64 %i.next, 8192
  br i1 %again, label %outer, label %exit
exit:
  %r = phi <8192 x float> [ %w, %join ], [ %w, %latch ]
  store <8192 x float> %r, ptr %c
  ret void
}

; %v is read after the insertion that gives %w: one copy an iteration, none on the back edge.
; CHECK-LABEL: define void @both(
; CHECK: loop:
; CHECK: call void @llvm.memcpy{{.*}}(ptr %w.buf, ptr %v.buf
; CHECK: %old = load float, ptr
; CHECK: {{^}}exit:
define void @both(ptr noalias %a, ptr noalias %c, float %x) {
entry:
  %first = load <8192 x float>, ptr %a
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %v = phi <8192 x float> [ %first, %entry ], [ %w, %loop ]
  %w = insertelement <8192 x float> %v, float %x, i64 %i
  %old = extractelement <8192 x float> %v, i64 %i
  store float %old, ptr %c
  %next = add i64 %i, 3
  %again = icmp ult i64 %next, 8192
  br i1 %again, label %loop, label %exit
exit:
  store <8192 x float> %w, ptr %c
  ret void
}

; A chain of insertions into an undefined vector: only the result is copied.
; CHECK-LABEL: define void @row(
; CHECK-COUNT-1: call void @llvm.memcpy
; CHECK-NOT: call void @llvm.mem
; CHECK: ret void
define void @row(ptr %c, float %x) {
  %v1 = insertelement <8192 x float> poison, float %x, i32 0
  %v2 = insertelement <8192 x float> %v1, float %x, i32 1
  %v3 = insertelement <8192 x float> %v2, float %x, i32 2
  %v4 = insertelement <8192 x float> %v3, float %x, i32 3
  store <8192 x float> %v4, ptr %c
  ret void
}
