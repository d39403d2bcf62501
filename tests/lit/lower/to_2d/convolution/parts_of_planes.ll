; A convolution by 1 x 1 filters writes its result among padding if products of rows take no longer than products of
; whole planes and a copy: rows of 104 floats fill registers, rows of 26 bfloats do not.
; RUN: grep -v "^;" %s | tlx-lower - --target=avx512 --stop-after=to-2d --remarks -o /dev/null 2>&1 | FileCheck %s

; CHECK-NOT: temporary of {{.*}} for fmul
; CHECK:     temporary of 1.0 MiB for pad
; CHECK-NOT: temporary of {{.*}} for pad
; CHECK:     temporary of 253.5 KiB for fmul
; CHECK:     temporary of 294.0 KiB for pad
define void @large(ptr noalias %y, ptr noalias %x, ptr noalias %w, ptr noalias %v) {
  %tx = call token @llvm.tensor.load(ptr elementtype(float) %x, <4 x i32> <i32 1, i32 24, i32 104, i32 104>, <4 x i32> <i32 0, i32 1, i32 2, i32 3>, <4 x i32> <i32 0, i32 0, i32 0, i32 0>, <4 x i32> <i32 0, i32 0, i32 0, i32 0>)
  %tw = call token @llvm.tensor.load(ptr elementtype(float) %w, <4 x i32> <i32 24, i32 24, i32 1, i32 1>, <4 x i32> <i32 0, i32 1, i32 2, i32 3>, <4 x i32> <i32 0, i32 0, i32 0, i32 0>, <4 x i32> <i32 0, i32 0, i32 0, i32 0>)
  %a = call <259584 x float> @llvm.tensor.convolution(token %tx, token %tw, <2 x i32> <i32 1, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 0>)
  %r = fmul <259584 x float> %a, %a
  %ta = call token @llvm.tensor.typeinfo(<259584 x float> %r, <4 x i32> <i32 1, i32 24, i32 104, i32 104>, <4 x i32> <i32 0, i32 1, i32 2, i32 3>, <4 x i32> <i32 0, i32 0, i32 0, i32 0>)
  %p = call <269664 x float> @llvm.tensor.pad(token %ta, <4 x i32> <i32 0, i32 0, i32 1, i32 1>, <4 x i32> <i32 0, i32 0, i32 1, i32 1>, float 0.0)
  %tp = call token @llvm.tensor.typeinfo(<269664 x float> %p, <4 x i32> <i32 1, i32 24, i32 106, i32 106>, <4 x i32> <i32 0, i32 1, i32 2, i32 3>, <4 x i32> <i32 0, i32 0, i32 0, i32 0>)
  %tv = call token @llvm.tensor.load(ptr elementtype(float) %v, <4 x i32> <i32 24, i32 24, i32 3, i32 3>, <4 x i32> <i32 0, i32 1, i32 2, i32 3>, <4 x i32> <i32 0, i32 0, i32 0, i32 0>, <4 x i32> <i32 0, i32 0, i32 0, i32 0>)
  %q = call <259584 x float> @llvm.tensor.convolution(token %tp, token %tv, <2 x i32> <i32 1, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 0>)
  store <259584 x float> %q, ptr %y
  ret void
}

define void @small(ptr noalias %y, ptr noalias %x, ptr noalias %w, ptr noalias %v) {
  %tx = call token @llvm.tensor.load(ptr elementtype(bfloat) %x, <4 x i32> <i32 1, i32 192, i32 26, i32 26>, <4 x i32> <i32 0, i32 1, i32 2, i32 3>, <4 x i32> <i32 0, i32 0, i32 0, i32 0>, <4 x i32> <i32 0, i32 0, i32 0, i32 0>)
  %tw = call token @llvm.tensor.load(ptr elementtype(bfloat) %w, <4 x i32> <i32 192, i32 192, i32 1, i32 1>, <4 x i32> <i32 0, i32 1, i32 2, i32 3>, <4 x i32> <i32 0, i32 0, i32 0, i32 0>, <4 x i32> <i32 0, i32 0, i32 0, i32 0>)
  %a = call <129792 x bfloat> @llvm.tensor.convolution(token %tx, token %tw, <2 x i32> <i32 1, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 0>)
  %r = fmul <129792 x bfloat> %a, %a
  %ta = call token @llvm.tensor.typeinfo(<129792 x bfloat> %r, <4 x i32> <i32 1, i32 192, i32 26, i32 26>, <4 x i32> <i32 0, i32 1, i32 2, i32 3>, <4 x i32> <i32 0, i32 0, i32 0, i32 0>)
  %p = call <150528 x bfloat> @llvm.tensor.pad(token %ta, <4 x i32> <i32 0, i32 0, i32 1, i32 1>, <4 x i32> <i32 0, i32 0, i32 1, i32 1>, bfloat 0xR0000)
  %tp = call token @llvm.tensor.typeinfo(<150528 x bfloat> %p, <4 x i32> <i32 1, i32 192, i32 28, i32 28>, <4 x i32> <i32 0, i32 1, i32 2, i32 3>, <4 x i32> <i32 0, i32 0, i32 0, i32 0>)
  %tv = call token @llvm.tensor.load(ptr elementtype(bfloat) %v, <4 x i32> <i32 192, i32 192, i32 3, i32 3>, <4 x i32> <i32 0, i32 1, i32 2, i32 3>, <4 x i32> <i32 0, i32 0, i32 0, i32 0>, <4 x i32> <i32 0, i32 0, i32 0, i32 0>)
  %q = call <129792 x bfloat> @llvm.tensor.convolution(token %tp, token %tv, <2 x i32> <i32 1, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 0>)
  store <129792 x bfloat> %q, ptr %y
  ret void
}
