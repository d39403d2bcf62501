; The products of a sum are added in registers: two loops, without storing sums in between. Offsets that are not
; linear in the product's index are read from a table.
; RUN: grep -v '^;' %s | tlx-lower - --target=avx512 --stop-after=to-tiles -o - | FileCheck %s

; CHECK-LABEL: define internal void @tlx.matmul.16x16x3x8.f32.f32.f32(
; CHECK:       s.loop:
; CHECK:         %s.acc = phi <256 x float> [ zeroinitializer,
; CHECK:         mul i64 %s, 128
; CHECK:         %{{.*}} = call <256 x float> @llvm.tensor.smma
; CHECK:         icmp slt i64 %s.next, 3
; CHECK:       s.end:
; CHECK:         call void @llvm.tensor.store.p0.v2i32(ptr %c,
; CHECK-NEXT:    ret void
define void @blocks(ptr noalias %r, ptr noalias %p, ptr noalias %q) {
  %a = call token @llvm.tensor.load(ptr elementtype(float) %p, <3 x i32> <i32 3, i32 16, i32 8>, <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> zeroinitializer, <3 x i32> zeroinitializer)
  %b = call token @llvm.tensor.load(ptr elementtype(float) %q, <3 x i32> <i32 3, i32 8, i32 16>, <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> zeroinitializer, <3 x i32> zeroinitializer)
  %c = call <256 x float> @llvm.tensor.contract(token %a, token %b, <2 x i32> <i32 0, i32 2>, <2 x i32> <i32 0, i32 1>)
  %t = call token @llvm.tensor.typeinfo(<256 x float> %c, <2 x i32> <i32 16, i32 16>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %r, token %t, <2 x i32> zeroinitializer)
  ret void
}

; CHECK-LABEL: define internal void @tlx.matmul.{{[0-9]+}}x{{[0-9]+}}x4x64.f32.f32.f32(
; CHECK:       s.loop:
; CHECK:         getelementptr inbounds i64, ptr @tlx.offsets, i64 %s
; CHECK-NEXT:    %offset = load i64,
; CHECK:       @tlx.offsets = private unnamed_addr constant [4 x i64] [i64 0, i64 1, i64 100, i64 101], align 64
define void @window(ptr noalias %r, ptr noalias %p, ptr noalias %q) {
  %x = call token @llvm.tensor.load(ptr elementtype(float) %p, <4 x i32> <i32 1, i32 128, i32 10, i32 100>, <4 x i32> <i32 0, i32 1, i32 2, i32 3>, <4 x i32> zeroinitializer, <4 x i32> zeroinitializer)
  %w = call token @llvm.tensor.load(ptr elementtype(float) %q, <4 x i32> <i32 2, i32 2, i32 64, i32 128>, <4 x i32> <i32 2, i32 3, i32 1, i32 0>, <4 x i32> zeroinitializer, <4 x i32> zeroinitializer)
  %y = call <114048 x float> @llvm.tensor.convolution(token %x, token %w, <4 x i32> <i32 1, i32 1, i32 1, i32 1>, <4 x i32> zeroinitializer, <4 x i32> zeroinitializer)
  %t = call token @llvm.tensor.typeinfo(<114048 x float> %y, <4 x i32> <i32 1, i32 128, i32 9, i32 99>, <4 x i32> <i32 0, i32 1, i32 2, i32 3>, <4 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %r, token %t, <4 x i32> zeroinitializer)
  ret void
}
