; A loop around products is outlined into a function by the second stage, into which the third inlines the products.
; RUN: grep -v '^;' %s | tlx-lower - --stop-after=to-tiles --target=avx512 -o %t.ll
; RUN: FileCheck %s --check-prefix=TILES < %t.ll
; RUN: tlx-lower %t.ll --target=avx512 -o - | FileCheck %s
; RUN: grep -v '^;' %s | tlx-lower - --target=avx512 -o - | FileCheck %s

; TILES-LABEL: define void @batch(
; TILES-NEXT:    call void @tlx.nest.batch(ptr %a, ptr %b, ptr %c)
; TILES-NEXT:    br label %batch.end
; TILES:       define internal void @tlx.nest.batch(ptr %a, ptr %b, ptr %c) nounwind noinline "tlx-stage"="nest" "target-features"="+avx512f,
; TILES:       batch.loop:
; TILES-NEXT:    %batch = phi i64 [ 0, %entry ], [ %batch.next, %batch.loop ]
; TILES:         call void @tlx.matmul.3x16x20.f32.f32.f32(

; CHECK-LABEL: define void @batch(
; CHECK-NEXT:    call void @tlx.nest.batch(ptr %a, ptr %b, ptr %c)
; CHECK:       define internal void @tlx.nest.batch(ptr %a, ptr %b, ptr %c) nounwind noinline "no-builtins" "target-features"="+avx512f,
; CHECK-SAME:  "min-legal-vector-width"="512"
; CHECK:       batch.loop:
; CHECK:       k.loop:
; CHECK-NEXT:    %k = phi i64 [ 0, %batch.loop ], [ %k.next, %k.loop ]
; CHECK:         @llvm.fma.
; CHECK:       k.end:
; CHECK:         br label %batch.loop.rest
; CHECK:       batch.loop.rest:
; CHECK-NEXT:    %batch.next = add i64 %batch, 1
; CHECK-NOT:   define internal void @tlx.matmul

define void @batch(ptr %a, ptr %b, ptr noalias %c) {
  %x = call token @llvm.tensor.load(ptr elementtype(float) %a, <3 x i32> <i32 20, i32 3, i32 20>, <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> zeroinitializer, <3 x i32> zeroinitializer)
  %y = call token @llvm.tensor.load(ptr elementtype(float) %b, <3 x i32> <i32 20, i32 20, i32 16>, <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> zeroinitializer, <3 x i32> zeroinitializer)
  %m = call <960 x float> @llvm.tensor.matmul(token %x, token %y)
  %t = call token @llvm.tensor.typeinfo(<960 x float> %m, <3 x i32> <i32 20, i32 3, i32 16>, <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <3 x i32> zeroinitializer)
  ret void
}

; A short sum is fully unrolled, so the loop over the batch is the only one.
; CHECK:       define internal void @tlx.nest.short(
; CHECK:       batch.loop:
; CHECK-NOT:   k.loop
; CHECK-COUNT-12: @llvm.fma.
; CHECK-NOT:   @llvm.fma.
; CHECK:       br i1 %{{.*}}, label %batch.loop, label %batch.end
define void @short(ptr %a, ptr %b, ptr noalias %c) {
  %x = call token @llvm.tensor.load(ptr elementtype(float) %a, <3 x i32> <i32 20, i32 3, i32 4>, <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> zeroinitializer, <3 x i32> zeroinitializer)
  %y = call token @llvm.tensor.load(ptr elementtype(float) %b, <3 x i32> <i32 20, i32 4, i32 16>, <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> zeroinitializer, <3 x i32> zeroinitializer)
  %m = call <960 x float> @llvm.tensor.matmul(token %x, token %y)
  %t = call token @llvm.tensor.typeinfo(<960 x float> %m, <3 x i32> <i32 20, i32 3, i32 16>, <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <3 x i32> zeroinitializer)
  ret void
}
