; Rows of 28 pixels fill 87 % of registers, filters fill them whole: a block is 28 pixels by 128 filters. The image is
; copied with channels innermost, the weights with filters innermost, and a block of the result is stored column by column.
; Pixels of 512 bytes would share sets of L1: they are padded by a cache line.
; Weights of 128 x (128 x 3 x 3) are copied as a matrix of 128 x 1152; the nine products of a sum are interleaved in it.
; RUN: grep -v '^;' %s | tlx-lower - --stop-after=to-2d --target=avx512 -o - | FileCheck %s
; RUN: grep -v '^;' %s | tlx-lower - --stop-after=to-tiles --target=avx512 -o - | FileCheck %s --check-prefix=TILES
; RUN: grep -v '^;' %s | tlx-lower - --stop-after=to-tiles --target=avx512 --knobs=ahead=8 -o - | FileCheck %s --check-prefix=AHEAD

; CHECK-LABEL: define void @rows(
; CHECK:         %last.buf = getelementptr
; CHECK:         %w.buf = getelementptr
; CHECK:         call <147456 x float> @llvm.tensor.transpose
; CHECK:         call void @llvm.tensor.store.p0.v2i32(ptr %w.buf, token %{{.*}}, <2 x i32> <i32 0, i32 128>)
; CHECK:         %lhs = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %lhs.ptr, <2 x i32> <i32 28, i32 128>, <2 x i32> <i32 0, i32 1>, {{.*}}<2 x i32> <i32 0, i32 144>)
; CHECK:         %rhs = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %w.buf, <2 x i32> <i32 128, i32 128>, <2 x i32> <i32 0, i32 1>, {{.*}}<2 x i32> <i32 0, i32 1152>)
; CHECK-COUNT-8: call <3584 x float> @llvm.tensor.smma
; CHECK:         %transpose{{.*}} = call <3584 x float> @llvm.tensor.transpose{{.*}}(token %product, <2 x i32> <i32 1, i32 0>)
; CHECK:         %[[C:.*]] = call token @llvm.tensor.typeinfo{{.*}}(<3584 x float> %transpose{{.*}}, <2 x i32> <i32 128, i32 28>, <2 x i32> <i32 1, i32 0>,
; CHECK:         call void @llvm.tensor.store.p0.v2i32(ptr %out.ptr, token %[[C]], <2 x i32> <i32 0, i32 784>)

; Each step is a channel in all nine positions of the kernel, and reads the copy sequentially, which the hardware
; prefetches: software prefetch is used only with a knob, eight rows of 512 bytes ahead. Neighbouring windows share pixels,
; which is hidden from LLVM. When its sums are complete, a tile is transposed a register of each row at a time.
; TILES-LABEL: define internal void @tlx.matmul.28x128x9x128.f32.f32.f32(
; TILES:         %a.at = call ptr asm
; TILES:         %a.at.1 = call ptr asm
; TILES:         %a.at.2 = call ptr asm
; TILES-NOT:     asm
; TILES:       k.loop:
; TILES-NEXT:    %k = phi
; TILES-NEXT:    %[[SUMS:.*]] = phi <[[N:[0-9]+]] x float>
; TILES-NEXT:    %[[STEP:.*]] = mul i64 %k, 1152
; TILES-NEXT:    %[[B:.*]] = getelementptr inbounds float, ptr %{{.*}}, i64 %[[STEP]]
; TILES-NEXT:    %[[A:.*]] = getelementptr inbounds float, ptr %a.at, i64 %k
; TILES:         typeinfo.v[[N]]f32.v2i32(<[[N]] x float> %[[SUMS]], <2 x i32> <i32 [[ROWS:[0-9]+]], i32 [[COLUMNS:[0-9]+]]>,
; TILES-NOT:     prefetch
; TILES:         getelementptr inbounds float, ptr %a.at.1, i64 %k
; TILES:         getelementptr inbounds float, ptr %[[B]], i64 128
; TILES-COUNT-8: call <[[N]] x float> @llvm.tensor.smma
; TILES-NOT:     prefetch
; TILES:       k.end:
; TILES:         call void @llvm.tensor.store.p0.v2i32(ptr %scratch, token
; TILES:         call void @tlx.matmul.28x128x9x128.f32.f32.f32.epilogue(ptr %scratch, ptr %
; TILES:       define internal void @tlx.matmul.28x128x9x128.f32.f32.f32.epilogue(
; TILES:       er.loop:
; TILES:         @llvm.tensor.transpose
; TILES:         <2 x i32> <i32 16, i32 [[ROWS]]>, <2 x i32> <i32 1, i32 0>
; TILES:         call void @llvm.tensor.store.p0.v2i32(ptr %{{.*}}, token %{{.*}}, <2 x i32> <i32 0, i32 784>)
; AHEAD:       k.loop:
; AHEAD:         %[[B:.*]] = getelementptr inbounds float, ptr %{{.*}}, i64 %{{.*}}
; AHEAD:         getelementptr i8, ptr %[[B]], i64 4096
; AHEAD-NEXT:    call void @llvm.prefetch.p0(
define void @rows(ptr noalias %p, ptr noalias %q, ptr noalias %r) {
  %x = call token @llvm.tensor.load(ptr elementtype(float) %p, <4 x i32> <i32 1, i32 128, i32 30, i32 30>, <4 x i32> <i32 0, i32 1, i32 2, i32 3>, <4 x i32> zeroinitializer, <4 x i32> zeroinitializer)
  %w = call token @llvm.tensor.load(ptr elementtype(float) %q, <4 x i32> <i32 128, i32 128, i32 3, i32 3>, <4 x i32> <i32 0, i32 1, i32 2, i32 3>, <4 x i32> zeroinitializer, <4 x i32> zeroinitializer)
  %y = call <100352 x float> @llvm.tensor.convolution(token %x, token %w)
  %t = call token @llvm.tensor.typeinfo(<100352 x float> %y, <4 x i32> <i32 1, i32 128, i32 28, i32 28>, <4 x i32> <i32 0, i32 1, i32 2, i32 3>, <4 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %r, token %t, <4 x i32> zeroinitializer)
  ret void
}

; The epilogue is computed before the tile is transposed: a bias is a row of such a tile.
; CHECK-LABEL: define void @biased(
; CHECK:         call <3584 x float> @llvm.tensor.smma
; CHECK:         %[[BIAS:.*]] = call <3584 x float> @llvm.tensor.broadcast{{.*}}(token %{{.*}}, <2 x i32> <i32 28, i32 128>
; CHECK:         fadd <3584 x float> %{{.*}}, %[[BIAS]]
; CHECK:         %relu = call <3584 x float> @llvm.tensor.relu
; CHECK:         %product = call token @llvm.tensor.typeinfo{{.*}}(<3584 x float> %relu, <2 x i32> <i32 28, i32 128>
; CHECK:         call <3584 x float> @llvm.tensor.transpose{{.*}}(token %product, <2 x i32> <i32 1, i32 0>)

; TILES-LABEL: define internal void @tlx.matmul.28x128x9x128.f32.f32.f32.fused.epilogue(
; TILES:       er.loop:
; TILES:         %[[BIAS:.*]] = call <[[PART:[0-9]+]] x float> @llvm.tensor.broadcast
; TILES-NEXT:    fadd <[[PART]] x float> %{{.*}}, %[[BIAS]]
; TILES:         call <[[PART]] x float> @llvm.tensor.relu
; TILES:         call <[[PART]] x float> @llvm.tensor.transpose
; TILES:         call void @llvm.tensor.store.p0.v2i32(ptr %{{.*}}, token %{{.*}}, <2 x i32> <i32 0, i32 784>)
define void @biased(ptr noalias %p, ptr noalias %q, ptr noalias %r, ptr noalias %s) {
  %x = call token @llvm.tensor.load(ptr elementtype(float) %p, <4 x i32> <i32 1, i32 128, i32 30, i32 30>, <4 x i32> <i32 0, i32 1, i32 2, i32 3>, <4 x i32> zeroinitializer, <4 x i32> zeroinitializer)
  %w = call token @llvm.tensor.load(ptr elementtype(float) %q, <4 x i32> <i32 128, i32 128, i32 3, i32 3>, <4 x i32> <i32 0, i32 1, i32 2, i32 3>, <4 x i32> zeroinitializer, <4 x i32> zeroinitializer)
  %b = call token @llvm.tensor.load(ptr elementtype(float) %s, <4 x i32> <i32 1, i32 128, i32 1, i32 1>, <4 x i32> <i32 0, i32 1, i32 2, i32 3>, <4 x i32> zeroinitializer, <4 x i32> zeroinitializer)
  %bias = call <100352 x float> @llvm.tensor.broadcast(token %b, <4 x i32> <i32 1, i32 128, i32 28, i32 28>, <4 x i32> <i32 0, i32 1, i32 2, i32 3>)
  %y = call <100352 x float> @llvm.tensor.convolution(token %x, token %w)
  %sum = fadd <100352 x float> %y, %bias
  %t = call token @llvm.tensor.typeinfo(<100352 x float> %sum, <4 x i32> <i32 1, i32 128, i32 28, i32 28>, <4 x i32> <i32 0, i32 1, i32 2, i32 3>, <4 x i32> zeroinitializer)
  %z = call <100352 x float> @llvm.tensor.relu(token %t)
  %u = call token @llvm.tensor.typeinfo(<100352 x float> %z, <4 x i32> <i32 1, i32 128, i32 28, i32 28>, <4 x i32> <i32 0, i32 1, i32 2, i32 3>, <4 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %r, token %u, <4 x i32> zeroinitializer)
  ret void
}
