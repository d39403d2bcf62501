; A convolution of a dilated input: two phases along rows of 30, each with two of the four positions in the kernel. No
; zeros are multiplied. The kernel is copied once, position by position. Zeros times infinite weights, NaN, are computed
; first and added to the sums; each phase is written to a buffer, and they are interleaved at the end.
;
; RUN: grep -v '^;' %s | tlx-lower - -o - --stop-after=to-2d --target=avx512 | FileCheck %s
; RUN: tlx-lower %s -o /dev/null --target=avx512 --remarks 2>&1 | FileCheck %s --check-prefix=REMARK
;
; REMARK: remark: dilated input: 2 phases of the result, each a convolution of the undilated input [to-2d]
;
; CHECK-LABEL: define void @f(
; CHECK-NOT: dilated
; CHECK: fcmp uno <4 x float> %matmul, %matmul
; CHECK: store.p0.v2i32(ptr %skipped.buf
; CHECK: store.p0.v2i32(ptr %w.buf
; CHECK: %matmul.2 = call <480 x float>
; CHECK-NEXT: %lhs.ptr = getelementptr inbounds float, ptr %w.buf, i64 4096
; CHECK-NEXT: %rhs.ptr.2 = getelementptr inbounds float, ptr %rhs.ptr.1, i64 1
; CHECK: %smma = call <480 x float>
; CHECK: fadd <480 x float> %smma, %broadcast
; CHECK: icmp slt i64 %{{.*}}, 17
; CHECK: getelementptr inbounds float, ptr %phases.buf, i64 8160
; CHECK-NEXT: getelementptr inbounds float, ptr %p, i64 1
; CHECK-NEXT: getelementptr inbounds float, ptr %w.buf, i64 2048
; CHECK: fadd <480 x float> %smma.1, %broadcast.1
; CHECK: ptr elementtype(float) %phases.buf, <2 x i32> <i32 2, i32 8160>
; CHECK: store.p0.v2i32(ptr %r, token %columns.1, <2 x i32> <i32 0, i32 2>)
; CHECK-NEXT: call void @free(

define void @f(ptr noalias %p, ptr noalias %q, ptr noalias %r) {
  %x = call token @llvm.tensor.load(ptr elementtype(float) %p, <4 x i32> <i32 1, i32 64, i32 17, i32 17>, <4 x i32> <i32 0, i32 1, i32 2, i32 3>, <4 x i32> zeroinitializer, <4 x i32> zeroinitializer)
  %w = call token @llvm.tensor.load(ptr elementtype(float) %q, <4 x i32> <i32 32, i32 64, i32 1, i32 4>, <4 x i32> <i32 0, i32 1, i32 2, i32 3>, <4 x i32> zeroinitializer, <4 x i32> zeroinitializer)
  %y = call <16320 x float> @llvm.tensor.convolution(token %x, token %w, <2 x i32> <i32 1, i32 1>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  store <16320 x float> %y, ptr %r
  ret void
}
