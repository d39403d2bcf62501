; The memory of a result that is used twice is freed at every exit; in a loop, each iteration frees that of the previous
; one. It is aligned to a cache line.
; RUN: grep -v '^;' %s | tlx-lower - --stop-after=to-2d --target=generic -o - | FileCheck %s
; RUN: grep -v '^;' %s | tlx-lower - --workspace=arena --target=generic --remarks -o - 2>&1 | FileCheck %s --check-prefix=ARENA
; RUN: grep -v '^;' %s | tlx-lower - --workspace=argument --target=generic --remarks -o - 2>&1 | FileCheck %s --check-prefix=ARGUMENT

; Values that do not change in a loop are in the thread's arena; remarks name those that come from malloc.
; ARENA:       remark: malloc allocates memory despite --workspace=arena, because its size changes in a loop: %s [to-2d]
; ARENA-LABEL: define void @sums(
; ARENA:         call void @free(
; ARENA-LABEL: define void @may_be_the_same(
; ARENA:         call void @tlx.workspace.release(
; ARENA-LABEL: define internal void @tlx.dynamic.reallocate(
; ARENA:         call noalias ptr @malloc(
; ARENA-LABEL: define internal void @tlx.dynamic.allocate(
; ARENA:         call noalias ptr @tlx.workspace.acquire(
; ARGUMENT:    remark: malloc allocates memory despite --workspace=argument, because its size is known only at run time: %s [to-2d]
; ARGUMENT:    remark: malloc allocates memory despite --workspace=argument, because its size is known only at run time: %v [to-2d]

; CHECK-LABEL: define void @sums(ptr %a, ptr noalias %b, ptr noalias %c, i32 %n, i1 %early) {
; CHECK-NEXT:  entry:
; CHECK-NEXT:    %s.slot = alloca ptr, align 8
; CHECK:         store ptr null, ptr %s.slot, align 8
; CHECK:       loop:
; CHECK:         call void @tlx.dynamic.reallocate(ptr %s.slot, i64 %{{.*}})
; CHECK-NEXT:    %[[M:.*]] = load ptr, ptr %s.slot, align 8
; CHECK-NEXT:    %[[A:.*]] = ptrtoint ptr %[[M]] to i64
; CHECK-NEXT:    %[[N:.*]] = sub i64 0, %[[A]]
; CHECK-NEXT:    %[[G:.*]] = and i64 %[[N]], 63
; CHECK-NEXT:    %[[L:.*]] = getelementptr inbounds i8, ptr %[[M]], i64 %[[G]]
; CHECK-NEXT:    call void @tlx.dynamic.map.sums.s(ptr %[[L]], ptr %a, i64 %{{.*}})
; CHECK:       out:
; CHECK:         %[[U:.*]] = load ptr, ptr %s.slot, align 8
; CHECK-NEXT:    call void @free(ptr %[[U]])
; CHECK-NEXT:    ret void
; CHECK:       end:
; CHECK:         %[[U:.*]] = load ptr, ptr %s.slot, align 8
; CHECK-NEXT:    call void @free(ptr %[[U]])
; CHECK:         ret void
define void @sums(ptr %a, ptr noalias %b, ptr noalias %c, i32 %n, i1 %early) {
entry:
  %shape = insertelement <1 x i32> undef, i32 %n, i32 0
  br label %loop

loop:
  %x = call token @llvm.tensor.load(ptr elementtype(float) %a, <1 x i32> %shape, <1 x i32> zeroinitializer, <1 x i32> zeroinitializer, <1 x i32> zeroinitializer)
  %v = call <vscale x 1 x float> @llvm.tensor.tovector(token %x)
  %d = fadd <vscale x 1 x float> %v, %v
  %s = fmul <vscale x 1 x float> %d, splat (float 3.0)
  %t = call token @llvm.tensor.typeinfo(<vscale x 1 x float> %s, <1 x i32> %shape, <1 x i32> zeroinitializer, <1 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %b, token %t, <1 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <1 x i32> zeroinitializer)
  br i1 %early, label %out, label %next

next:
  %more = call i1 @again()
  br i1 %more, label %loop, label %end

out:
  ret void

end:
  ret void
}

declare i1 @again()

; A value that is only stored is written to its destination; memory that may alias it is copied first.
; CHECK-LABEL: define void @stored(
; CHECK-NOT:     alloca
; CHECK:         call void @tlx.dynamic.map.stored.s(ptr %c, ptr %a, i64 %{{.*}})
; CHECK-NEXT:    ret void
define void @stored(ptr %a, ptr noalias %c, <1 x i32> %shape) {
  %x = call token @llvm.tensor.load(ptr elementtype(float) %a, <1 x i32> %shape, <1 x i32> zeroinitializer, <1 x i32> zeroinitializer, <1 x i32> zeroinitializer)
  %v = call <vscale x 1 x float> @llvm.tensor.tovector(token %x)
  %s = fmul <vscale x 1 x float> %v, %v
  %t = call token @llvm.tensor.typeinfo(<vscale x 1 x float> %s, <1 x i32> %shape, <1 x i32> zeroinitializer, <1 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <1 x i32> zeroinitializer)
  ret void
}

; CHECK-LABEL: define void @may_be_the_same(
; CHECK:         call void @tlx.dynamic.copy.r1.i32(ptr %[[M:.*]], ptr %a,
; CHECK:         call void @tlx.dynamic.map.may_be_the_same.s(ptr %c, ptr %[[M]],
define void @may_be_the_same(ptr %a, ptr %c, <1 x i32> %shape) {
  %x = call token @llvm.tensor.load(ptr elementtype(float) %a, <1 x i32> %shape, <1 x i32> zeroinitializer, <1 x i32> zeroinitializer, <1 x i32> zeroinitializer)
  %v = call <vscale x 1 x float> @llvm.tensor.tovector(token %x)
  %s = fmul <vscale x 1 x float> %v, %v
  %t = call token @llvm.tensor.typeinfo(<vscale x 1 x float> %s, <1 x i32> %shape, <1 x i32> zeroinitializer, <1 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <1 x i32> zeroinitializer)
  ret void
}

; Both instructions form one loop.
; CHECK-LABEL: define internal void @tlx.dynamic.map.sums.s(
; CHECK:         fadd <16 x float>
; CHECK-NEXT:    insertelement
; CHECK-NEXT:    shufflevector
; CHECK-NEXT:    fmul <16 x float>
; CHECK:         fadd float
; CHECK-NEXT:    fmul float %{{.*}}, 3.0
