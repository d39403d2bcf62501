; Consecutive values share a block of memory. Its size is known before it is allocated: the sum of the sizes of values
; that are live at the same time, the largest of those that are not. Only the first size may have been checked by then;
; the others are at most what malloc refuses. A call of the program's own functions, or a size loaded from memory, starts
; another block.
; RUN: grep -v '^;' %s | tlx-lower - --stop-after=to-2d --target=generic -o - | FileCheck %s

; CHECK-LABEL: define void @joined(
; CHECK-NEXT:    %x.s.slot = alloca ptr, align 8
; CHECK-NOT:     alloca
; CHECK:         %[[X:.*]] = add i64 %{{.*}}, 63
; CHECK:         %[[Y:.*]] = add i64 %{{.*}}, 63
; CHECK-NEXT:    %[[OK:.*]] = icmp ult i64 %[[Y]], 4503599627370496
; CHECK-NEXT:    %[[MOST:.*]] = select i1 %[[OK]], i64 %[[Y]], i64 4503599627370496
; CHECK-NEXT:    %[[LARGER:.*]] = icmp ugt i64 %[[X]], %[[MOST]]
; CHECK-NEXT:    %[[ALL:.*]] = select i1 %[[LARGER]], i64 %[[X]], i64 %[[MOST]]
; CHECK-NEXT:    call void @tlx.dynamic.allocate(ptr %x.s.slot, i64 %[[ALL]])
; CHECK-NEXT:    %[[M:.*]] = load ptr, ptr %x.s.slot, align 8
; CHECK-NOT:     @tlx.dynamic.allocate
; CHECK:         call void @tlx.dynamic.map.joined.x.s(
; CHECK:         ptrtoint ptr %[[M]] to i64
; CHECK:         call void @tlx.dynamic.map.joined.y.s(
; CHECK:         call void @free(
; CHECK-NOT:     call void @free(
; CHECK:         ret void
define void @joined(ptr noalias %a, ptr noalias %b, ptr noalias %c, ptr noalias %n, <1 x i32> %x.n, <1 x i32> %y.n) {
  %x = call token @llvm.tensor.load(ptr elementtype(float) %a, <1 x i32> %x.n, <1 x i32> zeroinitializer, <1 x i32> zeroinitializer, <1 x i32> zeroinitializer)
  %x.v = call <vscale x 1 x float> @llvm.tensor.tovector(token %x)
  %x.s = fmul <vscale x 1 x float> %x.v, %x.v
  %x.t = call token @llvm.tensor.typeinfo(<vscale x 1 x float> %x.s, <1 x i32> %x.n, <1 x i32> zeroinitializer, <1 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %b, token %x.t, <1 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %x.t, <1 x i32> zeroinitializer)
  %y = call token @llvm.tensor.load(ptr elementtype(float) %a, <1 x i32> %y.n, <1 x i32> zeroinitializer, <1 x i32> zeroinitializer, <1 x i32> zeroinitializer)
  %y.v = call <vscale x 1 x float> @llvm.tensor.tovector(token %y)
  %y.s = fmul <vscale x 1 x float> %y.v, %y.v
  %y.t = call token @llvm.tensor.typeinfo(<vscale x 1 x float> %y.s, <1 x i32> %y.n, <1 x i32> zeroinitializer, <1 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %b, token %y.t, <1 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %y.t, <1 x i32> zeroinitializer)
  ret void
}

; Values that are live at the same time have separate parts; the third one has the size of the first, which is dead by then,
; and reuses its part.
; CHECK-LABEL: define void @chained(
; CHECK:         %[[ALL:.*]] = add i64 %[[X:.*]], %{{.*}}
; CHECK-NEXT:    call void @tlx.dynamic.allocate(ptr %x.s.slot, i64 %[[ALL]])
; CHECK-NEXT:    %[[M:.*]] = load ptr, ptr %x.s.slot, align 8
; CHECK:         call void @tlx.dynamic.map.chained.x.s(
; CHECK:         getelementptr inbounds i8, ptr %[[M]], i64 %[[X]]{{$}}
; CHECK:         call void @tlx.dynamic.map.chained.y.s(
; CHECK:         ptrtoint ptr %[[M]] to i64
; CHECK:         call void @tlx.dynamic.map.chained.z.s(
define void @chained(ptr noalias %a, ptr noalias %b, ptr noalias %c, <1 x i32> %n) {
  %x = call token @llvm.tensor.load(ptr elementtype(float) %a, <1 x i32> %n, <1 x i32> zeroinitializer, <1 x i32> zeroinitializer, <1 x i32> zeroinitializer)
  %x.v = call <vscale x 1 x float> @llvm.tensor.tovector(token %x)
  %x.s = fmul <vscale x 1 x float> %x.v, %x.v
  %x.t = call token @llvm.tensor.typeinfo(<vscale x 1 x float> %x.s, <1 x i32> %n, <1 x i32> zeroinitializer, <1 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %b, token %x.t, <1 x i32> zeroinitializer)
  %y.s = fmul <vscale x 1 x float> %x.s, %x.s
  %y.t = call token @llvm.tensor.typeinfo(<vscale x 1 x float> %y.s, <1 x i32> %n, <1 x i32> zeroinitializer, <1 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %b, token %y.t, <1 x i32> zeroinitializer)
  %z.s = fmul <vscale x 1 x float> %y.s, %y.s
  %z.t = call token @llvm.tensor.typeinfo(<vscale x 1 x float> %z.s, <1 x i32> %n, <1 x i32> zeroinitializer, <1 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %b, token %z.t, <1 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %z.t, <1 x i32> zeroinitializer)
  ret void
}

; CHECK-LABEL: define void @may_not_return(
; CHECK:         call void @tlx.dynamic.allocate(ptr %x.s.slot,
; CHECK:         call void @own()
; CHECK:         call void @tlx.dynamic.allocate(ptr %y.s.slot,
; CHECK-COUNT-2: call void @free(
define void @may_not_return(ptr noalias %a, ptr noalias %b, ptr noalias %c, ptr noalias %n, <1 x i32> %x.n, <1 x i32> %y.n) {
  %x = call token @llvm.tensor.load(ptr elementtype(float) %a, <1 x i32> %x.n, <1 x i32> zeroinitializer, <1 x i32> zeroinitializer, <1 x i32> zeroinitializer)
  %x.v = call <vscale x 1 x float> @llvm.tensor.tovector(token %x)
  %x.s = fmul <vscale x 1 x float> %x.v, %x.v
  %x.t = call token @llvm.tensor.typeinfo(<vscale x 1 x float> %x.s, <1 x i32> %x.n, <1 x i32> zeroinitializer, <1 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %b, token %x.t, <1 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %x.t, <1 x i32> zeroinitializer)
  call void @own()
  %y = call token @llvm.tensor.load(ptr elementtype(float) %a, <1 x i32> %y.n, <1 x i32> zeroinitializer, <1 x i32> zeroinitializer, <1 x i32> zeroinitializer)
  %y.v = call <vscale x 1 x float> @llvm.tensor.tovector(token %y)
  %y.s = fmul <vscale x 1 x float> %y.v, %y.v
  %y.t = call token @llvm.tensor.typeinfo(<vscale x 1 x float> %y.s, <1 x i32> %y.n, <1 x i32> zeroinitializer, <1 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %b, token %y.t, <1 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %y.t, <1 x i32> zeroinitializer)
  ret void
}

; CHECK-LABEL: define void @size_in_memory(
; CHECK:         call void @tlx.dynamic.allocate(ptr %x.s.slot,
; CHECK:         %m = load <1 x i32>, ptr %n
; CHECK:         call void @tlx.dynamic.allocate(ptr %y.s.slot,
; CHECK-COUNT-2: call void @free(
define void @size_in_memory(ptr noalias %a, ptr noalias %b, ptr noalias %c, ptr noalias %n, <1 x i32> %x.n, <1 x i32> %y.n) {
  %x = call token @llvm.tensor.load(ptr elementtype(float) %a, <1 x i32> %x.n, <1 x i32> zeroinitializer, <1 x i32> zeroinitializer, <1 x i32> zeroinitializer)
  %x.v = call <vscale x 1 x float> @llvm.tensor.tovector(token %x)
  %x.s = fmul <vscale x 1 x float> %x.v, %x.v
  %x.t = call token @llvm.tensor.typeinfo(<vscale x 1 x float> %x.s, <1 x i32> %x.n, <1 x i32> zeroinitializer, <1 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %b, token %x.t, <1 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %x.t, <1 x i32> zeroinitializer)
  %m = load <1 x i32>, ptr %n
  %y = call token @llvm.tensor.load(ptr elementtype(float) %a, <1 x i32> %m, <1 x i32> zeroinitializer, <1 x i32> zeroinitializer, <1 x i32> zeroinitializer)
  %y.v = call <vscale x 1 x float> @llvm.tensor.tovector(token %y)
  %y.s = fmul <vscale x 1 x float> %y.v, %y.v
  %y.t = call token @llvm.tensor.typeinfo(<vscale x 1 x float> %y.s, <1 x i32> %m, <1 x i32> zeroinitializer, <1 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %b, token %y.t, <1 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %y.t, <1 x i32> zeroinitializer)
  ret void
}

; Two blocks of memory in a block of code, each for two values.
; CHECK-LABEL: define void @two_blocks(
; CHECK:         call void @tlx.dynamic.allocate(ptr %x.s.slot,
; CHECK-NEXT:    %[[M:.*]] = load ptr, ptr %x.s.slot, align 8
; CHECK:         getelementptr inbounds i8, ptr %[[M]], i64
; CHECK:         call void @tlx.dynamic.map.two_blocks.y.s(
; CHECK:         %m = load <1 x i32>, ptr %n
; CHECK:         call void @tlx.dynamic.allocate(ptr %z.s.slot,
; CHECK-NEXT:    %[[N:.*]] = load ptr, ptr %z.s.slot, align 8
; CHECK:         getelementptr inbounds i8, ptr %[[N]], i64
; CHECK:         getelementptr inbounds i8, ptr %[[N]], i64
; CHECK:         call void @tlx.dynamic.map.two_blocks.w.s(
; CHECK-COUNT-2: call void @free(
; CHECK-NOT:     call void @free(
; CHECK:         ret void
define void @two_blocks(ptr noalias %a, ptr noalias %b, ptr noalias %c, ptr noalias %n, <1 x i32> %x.n, <1 x i32> %y.n) {
  %x = call token @llvm.tensor.load(ptr elementtype(float) %a, <1 x i32> %x.n, <1 x i32> zeroinitializer, <1 x i32> zeroinitializer, <1 x i32> zeroinitializer)
  %x.v = call <vscale x 1 x float> @llvm.tensor.tovector(token %x)
  %x.s = fmul <vscale x 1 x float> %x.v, %x.v
  %x.t = call token @llvm.tensor.typeinfo(<vscale x 1 x float> %x.s, <1 x i32> %x.n, <1 x i32> zeroinitializer, <1 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %b, token %x.t, <1 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %x.t, <1 x i32> zeroinitializer)
  %y = call token @llvm.tensor.load(ptr elementtype(float) %a, <1 x i32> %y.n, <1 x i32> zeroinitializer, <1 x i32> zeroinitializer, <1 x i32> zeroinitializer)
  %y.v = call <vscale x 1 x float> @llvm.tensor.tovector(token %y)
  %y.s = fmul <vscale x 1 x float> %y.v, %y.v
  %y.t = call token @llvm.tensor.typeinfo(<vscale x 1 x float> %y.s, <1 x i32> %y.n, <1 x i32> zeroinitializer, <1 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %b, token %y.t, <1 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %y.t, <1 x i32> zeroinitializer)
  %m = load <1 x i32>, ptr %n
  %z = call token @llvm.tensor.load(ptr elementtype(float) %a, <1 x i32> %m, <1 x i32> zeroinitializer, <1 x i32> zeroinitializer, <1 x i32> zeroinitializer)
  %z.v = call <vscale x 1 x float> @llvm.tensor.tovector(token %z)
  %z.s = fmul <vscale x 1 x float> %z.v, %z.v
  %z.t = call token @llvm.tensor.typeinfo(<vscale x 1 x float> %z.s, <1 x i32> %m, <1 x i32> zeroinitializer, <1 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %b, token %z.t, <1 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %z.t, <1 x i32> zeroinitializer)
  %w = call token @llvm.tensor.load(ptr elementtype(float) %a, <1 x i32> %m, <1 x i32> zeroinitializer, <1 x i32> zeroinitializer, <1 x i32> zeroinitializer)
  %w.v = call <vscale x 1 x float> @llvm.tensor.tovector(token %w)
  %w.s = fmul <vscale x 1 x float> %w.v, %w.v
  %w.t = call token @llvm.tensor.typeinfo(<vscale x 1 x float> %w.s, <1 x i32> %m, <1 x i32> zeroinitializer, <1 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %b, token %w.t, <1 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %w.t, <1 x i32> zeroinitializer)
  ret void
}

declare void @own()
