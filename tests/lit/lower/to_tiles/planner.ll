; The temporaries of a function share one block of memory from malloc: those of stage 1, those that stage 2 adds, and the
; scratch memory of its kernels. Those that are not live at the same time overlap.
; RUN: grep -v '^;' %s | tlx-lower - --stop-after=to-2d --target=avx512 -o - | FileCheck %s --check-prefix=APART
; RUN: grep -v '^;' %s | tlx-lower - --stop-after=to-tiles --target=avx512 -o - | FileCheck %s --implicit-check-not=tlx.buffer

; APART-COUNT-2: call noalias ptr @malloc(i64 {{[0-9]+}}), !tlx.buffer !{}
; APART:         call void @free(
; APART-NEXT:    call void @free(
; APART-NEXT:    ret void

; CHECK-LABEL: define void @chain(
; CHECK-NEXT:    %workspace = call noalias ptr @malloc(i64 80128)
; CHECK:         %q.heap = getelementptr inbounds i8, ptr %workspace, i64 40064
; CHECK-NOT:     @malloc
; CHECK:         call void @free(ptr %workspace)
; CHECK-NEXT:    ret void
; CHECK-NEXT:  }
define void @chain(ptr noalias %c, ptr %a, ptr %b) {
  %x = call token @llvm.tensor.load(ptr elementtype(float) %a, <2 x i32> <i32 100, i32 100>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %y = call token @llvm.tensor.load(ptr elementtype(float) %b, <2 x i32> <i32 100, i32 100>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %p = call <10000 x float> @llvm.tensor.matmul(token %x, token %y)
  %s = call token @llvm.tensor.typeinfo(<10000 x float> %p, <2 x i32> <i32 100, i32 100>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  %q = call <10000 x float> @llvm.tensor.matmul(token %s, token %s)
  %t = call token @llvm.tensor.typeinfo(<10000 x float> %q, <2 x i32> <i32 100, i32 100>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  %r = call <10000 x float> @llvm.tensor.matmul(token %t, token %t)
  %u = call token @llvm.tensor.typeinfo(<10000 x float> %r, <2 x i32> <i32 100, i32 100>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %u, <2 x i32> zeroinitializer)
  ret void
}

; In a loop iteration, its products alternate between two temporaries, as they do outside of loops.
; CHECK-LABEL: define void @rounds(
; CHECK:         %workspace = call noalias ptr @malloc(i64 80128)
; CHECK-NOT:     @malloc
; CHECK:       }
define void @rounds(ptr noalias %c, ptr %a, i64 %n) {
entry:
  br label %loop

loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %from = getelementptr [10000 x float], ptr %a, i64 %i
  %to = getelementptr [10000 x float], ptr %c, i64 %i
  %x = call token @llvm.tensor.load(ptr elementtype(float) %from, <2 x i32> <i32 100, i32 100>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %p = call <10000 x float> @llvm.tensor.matmul(token %x, token %x)
  %s = call token @llvm.tensor.typeinfo(<10000 x float> %p, <2 x i32> <i32 100, i32 100>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  %q = call <10000 x float> @llvm.tensor.matmul(token %s, token %s)
  %t = call token @llvm.tensor.typeinfo(<10000 x float> %q, <2 x i32> <i32 100, i32 100>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  %r = call <10000 x float> @llvm.tensor.matmul(token %t, token %t)
  %u = call token @llvm.tensor.typeinfo(<10000 x float> %r, <2 x i32> <i32 100, i32 100>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  %v = call <10000 x float> @llvm.tensor.matmul(token %u, token %u)
  %w = call token @llvm.tensor.typeinfo(<10000 x float> %v, <2 x i32> <i32 100, i32 100>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %to, token %w, <2 x i32> zeroinitializer)
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %n
  br i1 %more, label %loop, label %end

end:
  ret void
}

; The panels of weights that several products share are in the block, too. They are dead when the last product
; runs, which reuses their memory.
; CHECK-LABEL: define void @layers(
; CHECK-NEXT:    %workspace = call noalias ptr @malloc(i64 139392)
; CHECK:         %panels.buf = getelementptr inbounds i8, ptr %workspace, i64 %
; CHECK:         %p.heap = getelementptr inbounds i8, ptr %workspace, i64 73792
; CHECK:         call void @tlx.matmul.64x64x256.f32.f32.f32(ptr %c, ptr %p.buf, ptr %v, ptr %workspace)
; CHECK-NEXT:    call void @free(ptr %workspace)
; CHECK-NEXT:    ret void
; CHECK-NEXT:  }
; CHECK-LABEL: define internal void @tlx.matmul.64x64x256.f32.f32.f32(ptr noalias %c, ptr %a, ptr %b, ptr noalias nonnull %scratch.heap)
; CHECK-NOT:     @malloc
; CHECK-NOT:     @free
define void @layers(ptr noalias %c, ptr noalias %x, ptr noalias %w, ptr noalias %v) {
  %a = call token @llvm.tensor.load(ptr elementtype(bfloat) %x, <4 x i32> <i32 1, i32 10, i32 34, i32 64>, <4 x i32> <i32 0, i32 2, i32 3, i32 1>, <4 x i32> zeroinitializer, <4 x i32> zeroinitializer)
  %b = call token @llvm.tensor.load(ptr elementtype(bfloat) %w, <4 x i32> <i32 3, i32 3, i32 64, i32 64>, <4 x i32> <i32 2, i32 3, i32 1, i32 0>, <4 x i32> zeroinitializer, <4 x i32> zeroinitializer)
  %d = call token @llvm.tensor.load(ptr elementtype(float) %v, <2 x i32> <i32 64, i32 256>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %p = call <16384 x float> @llvm.tensor.convolution(token %a, token %b, <4 x i32> <i32 1, i32 1, i32 1, i32 1>, <4 x i32> zeroinitializer, <4 x i32> zeroinitializer)
  %s = call token @llvm.tensor.typeinfo(<16384 x float> %p, <2 x i32> <i32 64, i32 256>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  %q = call <4096 x float> @llvm.tensor.contract(token %s, token %d, <1 x i32> <i32 1>, <1 x i32> <i32 1>)
  %t = call token @llvm.tensor.typeinfo(<4096 x float> %q, <2 x i32> <i32 64, i32 64>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}
