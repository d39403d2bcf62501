; A matrix unit reads the right operand in groups along K. An image whose channels are whole steps along K is copied once
; with each group of channels interleaved, and all windows read this copy in place, including undefined elements behind
; the last column: 28 columns and a border are 32. With stride 2, even and odd columns are deinterleaved. Filters are
; copied so that rows of tiles are contiguous: 128 channels of 9 positions are 36 sums of 32.
; RUN: grep -v '^;' %s | tlx-lower - --stop-after=to-2d --target=amx -o - | FileCheck %s
; RUN: grep -v '^;' %s | tlx-lower - --stop-after=to-2d --target=amx --remarks -o %t 2>&1 | FileCheck %s --check-prefix=REMARK
; RUN: grep -v '^;' %s | tlx-lower - --stop-after=to-tiles --target=amx -o - | FileCheck %s --check-prefix=TILES
; RUN: grep -v '^;' %s | tlx-lower - --target=amx --remarks -o %t 2>&1 | FileCheck %s --check-prefix=KERNEL
; RUN: grep -v '^;' %s | tlx-lower - --stop-after=to-2d --target=avx512 -o - | FileCheck %s --check-prefix=VECTORS

; REMARK: remark: copy of 60.0 KiB of operand x, because the matrix unit reads channels in groups {{.}}to-2d]
; REMARK: remark: copy of 928.0 KiB of operand x, because the matrix unit reads channels in groups and its rows are read in steps of 2
; KERNEL: remark: matmul 64x28x9*64 i8 -> i32: matrix unit i8 x i8 -> i32, register tile 32x32, nothing packed
; VECTORS-NOT: %groups.buf

; CHECK-LABEL: define void @stride_1(
; CHECK:         %groups.buf =
; CHECK:         %rhs.vnni = call token @llvm.tensor.load.p0.v3i32(ptr elementtype(i8) %rhs.ptr, <3 x i32> <i32 16, i32 32, i32 4>, <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> <i32 0, i32 4, i32 0>, <3 x i32> <i32 0, i32 0, i32 0>)
; CHECK-NEXT:    %[[FLAT:.*]] = call <1792 x i8> @llvm.tensor.reshape.permute{{.*}}(token %rhs.vnni, <3 x i32> <i32 0, i32 2, i32 1>, <2 x i32> <i32 64, i32 28>)
; CHECK-COUNT-8: call <1792 x i32> @llvm.tensor.smma
; TILES-LABEL: define internal void @tlx.matmul.64x28x9x64
; TILES-NOT:     alloca
; TILES:         call token @llvm.tensor.load{{.*}}, <3 x i32> <i32 16, i32 32, i32 4>, <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> <i32 0, i32 0, i32 0>, <3 x i32> <i32 0, i32 32, i32 4>)
define void @stride_1(ptr noalias %p, ptr noalias %q, ptr noalias %r) {
  %x = call token @llvm.tensor.load(ptr elementtype(i8) %p, <4 x i32> <i32 1, i32 64, i32 30, i32 30>, <4 x i32> <i32 0, i32 1, i32 2, i32 3>, <4 x i32> zeroinitializer, <4 x i32> zeroinitializer)
  %w = call token @llvm.tensor.load(ptr elementtype(i8) %q, <4 x i32> <i32 64, i32 64, i32 3, i32 3>, <4 x i32> <i32 0, i32 1, i32 2, i32 3>, <4 x i32> zeroinitializer, <4 x i32> zeroinitializer)
  %y = call <50176 x i32> @llvm.tensor.convolution(token %x, token %w, <2 x i32> <i32 1, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  store <50176 x i32> %y, ptr %r
  ret void
}

; CHECK-LABEL: define void @stride_2(
; CHECK-NOT:     %whole.buf
; CHECK:         %merged = shufflevector <32 x bfloat> {{.*}}, <32 x i32> <i32 0, i32 33, i32 2, i32 35,
; CHECK-NEXT:    %permuted = call token @llvm.tensor.typeinfo{{.*}}(<32 x bfloat> %merged
; CHECK:         %rhs.vnni = call token @llvm.tensor.load.p0.v3i32(ptr elementtype(bfloat) %rhs.ptr, <3 x i32> <i32 16, i32 32, i32 2>, <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> <i32 0, i32 4, i32 0>, <3 x i32> <i32 0, i32 0, i32 0>)
; CHECK-COUNT-35: call <3584 x float> @llvm.tensor.smma
define void @stride_2(ptr noalias %p, ptr noalias %q, ptr noalias %r) {
  %x = call token @llvm.tensor.load(ptr elementtype(bfloat) %p, <4 x i32> <i32 1, i32 128, i32 58, i32 58>, <4 x i32> <i32 0, i32 1, i32 2, i32 3>, <4 x i32> zeroinitializer, <4 x i32> zeroinitializer)
  %w = call token @llvm.tensor.load(ptr elementtype(bfloat) %q, <4 x i32> <i32 128, i32 128, i32 3, i32 3>, <4 x i32> <i32 0, i32 1, i32 2, i32 3>, <4 x i32> zeroinitializer, <4 x i32> zeroinitializer)
  %y = call <100352 x float> @llvm.tensor.convolution(token %x, token %w, <2 x i32> <i32 2, i32 2>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  store <100352 x float> %y, ptr %r
  ret void
}
