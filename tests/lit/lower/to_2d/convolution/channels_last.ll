; An image of three channels for a matrix unit: it is copied with channels innermost, so that the 7 neighbours of a
; window's row and their channels are 21 positions along K: 7 products are added up, not 21 of 7 positions each.
; RUN: grep -v '^;' %s | tlx-lower - --stop-after=to-2d --target=amx -o - | FileCheck %s
; RUN: grep -v '^;' %s | tlx-lower - --stop-after=to-2d --target=amx --remarks -o %t 2>&1 | FileCheck %s --check-prefix=REMARK
; RUN: grep -v '^;' %s | tlx-lower - --stop-after=to-2d --target=avx512 -o - | FileCheck %s --check-prefix=VECTORS

; REMARK: remark: copy of {{.*}} of operand x, because channels of neighbouring positions are summed in one pass
; CHECK-LABEL: define void @first_layer(
; CHECK:         %last.buf =
; CHECK:         %lhs = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(bfloat) %w.buf, <2 x i32> <i32 64, i32 21>, <2 x i32> <i32 0, i32 1>, {{.*}}<2 x i32> <i32 0, i32 21>)
; CHECK:         %rhs = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(bfloat) %rhs.ptr, <2 x i32> <i32 32, i32 21>, <2 x i32> <i32 1, i32 0>, {{.*}}<2 x i32> <i32 0, i32 6>)
; CHECK-COUNT-6: call <2048 x float> @llvm.tensor.smma
; CHECK-NOT:     call <2048 x float> @llvm.tensor.smma
; VECTORS-NOT:   %last.buf
define void @first_layer(ptr noalias %p, ptr noalias %q, ptr noalias %r) {
  %x = call token @llvm.tensor.load(ptr elementtype(bfloat) %p, <4 x i32> <i32 1, i32 3, i32 69, i32 69>, <4 x i32> <i32 0, i32 1, i32 2, i32 3>, <4 x i32> zeroinitializer, <4 x i32> zeroinitializer)
  %w = call token @llvm.tensor.load(ptr elementtype(bfloat) %q, <4 x i32> <i32 64, i32 3, i32 7, i32 7>, <4 x i32> <i32 0, i32 1, i32 2, i32 3>, <4 x i32> zeroinitializer, <4 x i32> zeroinitializer)
  %y = call <65536 x float> @llvm.tensor.convolution(token %x, token %w, <2 x i32> <i32 2, i32 2>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  store <65536 x float> %y, ptr %r
  ret void
}
