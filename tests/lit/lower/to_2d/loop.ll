; A loop-carried accumulator lives in one buffer, and the product works in place on it.
; RUN: grep -v '^;' %s | tlx-lower - --stop-after=to-2d --target=generic -o - | FileCheck %s

; CHECK-LABEL: define void @accumulate(ptr noalias %a, ptr noalias %c, i64 %n) {
; CHECK-NEXT:  entry:
; CHECK-NEXT:    %acc.buf = alloca [400 x float], align 64
; CHECK-NEXT:    call void @llvm.memset.p0.i64(ptr %acc.buf, i8 0, i64 1600, i1 false)
; CHECK-NEXT:    br label %loop
; CHECK-EMPTY:
; CHECK-NEXT:  loop:
; CHECK-NEXT:    %k = phi i64 [ 0, %entry ], [ %k.next, %loop ]
; CHECK-NEXT:    %offset = mul i64 %k, 400
; CHECK-NEXT:    %p = getelementptr float, ptr %a, i64 %offset
; CHECK-NEXT:    %acc.1 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %acc.buf, <2 x i32> <i32 20, i32 20>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 20>)
; CHECK-NEXT:    %lhs = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %p, <2 x i32> <i32 20, i32 20>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 20>)
; CHECK-NEXT:    %rhs = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %p, <2 x i32> <i32 20, i32 20>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 20>)
; CHECK-NEXT:    %smma = call <400 x float> @llvm.tensor.smma.v400f32(token %acc.1, token %lhs, token %rhs)
; CHECK-NEXT:    %sum.1 = call token @llvm.tensor.typeinfo.v400f32.v2i32(<400 x float> %smma, <2 x i32> <i32 20, i32 20>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT:    call void @llvm.tensor.store.p0.v2i32(ptr %acc.buf, token %sum.1, <2 x i32> <i32 0, i32 20>)
; CHECK-NEXT:    %k.next = add i64 %k, 1
; CHECK-NEXT:    %again = icmp slt i64 %k.next, %n
; CHECK-NEXT:    br i1 %again, label %loop, label %exit
; CHECK-EMPTY:
; CHECK-NEXT:  exit:
; CHECK-NEXT:    call void @llvm.memcpy.p0.p0.i64(ptr %c, ptr %acc.buf, i64 1600, i1 false)
; CHECK-NEXT:    ret void
; CHECK-NEXT:  }
define void @accumulate(ptr noalias %a, ptr noalias %c, i64 %n) {
entry:
  br label %loop

loop:
  %k = phi i64 [ 0, %entry ], [ %k.next, %loop ]
  %acc = phi <400 x float> [ zeroinitializer, %entry ], [ %sum, %loop ]
  %t = call token @llvm.tensor.typeinfo(<400 x float> %acc, <2 x i32> <i32 20, i32 20>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  %offset = mul i64 %k, 400
  %p = getelementptr float, ptr %a, i64 %offset
  %x = call token @llvm.tensor.load(ptr elementtype(float) %p, <2 x i32> <i32 20, i32 20>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %sum = call <400 x float> @llvm.tensor.smma(token %t, token %x, token %x)
  %k.next = add i64 %k, 1
  %again = icmp slt i64 %k.next, %n
  br i1 %again, label %loop, label %exit

exit:
  %last = phi <400 x float> [ %sum, %loop ]
  store <400 x float> %last, ptr %c
  ret void
}

; Two tensors that are swapped in every iteration: one of them goes through a second buffer.
; CHECK-LABEL: define void @swap(ptr noalias %a, ptr noalias %c, i64 %n) {
; CHECK-NEXT:  entry:
; CHECK-NEXT:    %p.buf = alloca [400 x float], align 64
; CHECK-NEXT:    %q.buf = alloca [400 x float], align 64
; CHECK-NEXT:    %swap.buf = alloca [400 x float], align 64
; CHECK-NEXT:    call void @llvm.memcpy.p0.p0.i64(ptr %p.buf, ptr %a, i64 1600, i1 false)
; CHECK-NEXT:    call void @llvm.memset.p0.i64(ptr %q.buf, i8 0, i64 1600, i1 false)
; CHECK-NEXT:    br label %loop
; CHECK-EMPTY:
; CHECK-NEXT:  loop:
; CHECK-NEXT:    %k = phi i64 [ 0, %entry ], [ %k.next, %loop.edge ]
; CHECK-NEXT:    %k.next = add i64 %k, 1
; CHECK-NEXT:    %again = icmp slt i64 %k.next, %n
; CHECK-NEXT:    br i1 %again, label %loop.edge, label %exit
; CHECK-EMPTY:
; CHECK-NEXT:  loop.edge:
; CHECK-NEXT:    call void @llvm.memcpy.p0.p0.i64(ptr %swap.buf, ptr %q.buf, i64 1600, i1 false)
; CHECK-NEXT:    call void @llvm.memcpy.p0.p0.i64(ptr %q.buf, ptr %p.buf, i64 1600, i1 false)
; CHECK-NEXT:    call void @llvm.memcpy.p0.p0.i64(ptr %p.buf, ptr %swap.buf, i64 1600, i1 false)
; CHECK-NEXT:    br label %loop
; CHECK-EMPTY:
; CHECK-NEXT:  exit:
; CHECK-NEXT:    call void @llvm.memcpy.p0.p0.i64(ptr %c, ptr %p.buf, i64 1600, i1 false)
; CHECK-NEXT:    ret void
; CHECK-NEXT:  }
define void @swap(ptr noalias %a, ptr noalias %c, i64 %n) {
entry:
  %v = load <400 x float>, ptr %a
  br label %loop

loop:
  %k = phi i64 [ 0, %entry ], [ %k.next, %loop ]
  %p = phi <400 x float> [ %v, %entry ], [ %q, %loop ]
  %q = phi <400 x float> [ zeroinitializer, %entry ], [ %p, %loop ]
  %k.next = add i64 %k, 1
  %again = icmp slt i64 %k.next, %n
  br i1 %again, label %loop, label %exit

exit:
  %t = call token @llvm.tensor.typeinfo(<400 x float> %p, <2 x i32> <i32 20, i32 20>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}
