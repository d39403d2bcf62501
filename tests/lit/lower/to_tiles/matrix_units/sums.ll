; The products of a sum on a matrix unit, with several consecutive tiles of the result: sums are stored to
; C, or pass through the epilogue, during the first product of the next tile; the other products follow, in one loop over all steps.
; RUN: grep -v '^;' %s > %t.ll && tlx-lower %t.ll --target=amx --stop-after=to-tiles -o - | FileCheck %s
; RUN: tlx-lower %t.ll -o %t.o.ll --target=amx --check --emulate-matrix

; CHECK-LABEL: define internal void @tlx.matmul.64x32x3x64.bf16.bf16.f32(
; CHECK:       pack.end:
; CHECK:         call void @llvm.tensor.store.p0.v2i32(ptr %{{.*}}, token %c.1, <2 x i32> <i32 0, i32 32>)
; CHECK:         %[[FIRST:.*]] = call <1024 x float> @llvm.tensor.smma
; CHECK-NOT:     smma
; CHECK:       k.loop:
; CHECK-NEXT:    %[[K:.*]] = phi i64 [ 1,
; CHECK-NEXT:    phi <1024 x float> [ %[[FIRST]],
; CHECK:         udiv i64 %[[K]], 2
; CHECK:         call <1024 x float> @llvm.tensor.smma
; CHECK:         icmp slt i64 %{{.*}}, 6
define void @plain(ptr noalias %r, ptr noalias %p, ptr noalias %q) {
  %a = call token @llvm.tensor.load(ptr elementtype(bfloat) %p, <3 x i32> <i32 3, i32 64, i32 64>, <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> zeroinitializer, <3 x i32> zeroinitializer)
  %b = call token @llvm.tensor.load(ptr elementtype(bfloat) %q, <3 x i32> <i32 3, i32 64, i32 32>, <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> zeroinitializer, <3 x i32> zeroinitializer)
  %c = call <2048 x float> @llvm.tensor.contract(token %a, token %b, <2 x i32> <i32 0, i32 2>, <2 x i32> <i32 0, i32 1>)
  %t = call token @llvm.tensor.typeinfo(<2048 x float> %c, <2 x i32> <i32 64, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %r, token %t, <2 x i32> zeroinitializer)
  ret void
}

; CHECK-LABEL: define internal void @tlx.matmul.64x32x3x64.bf16.bf16.bf16.fused(
; CHECK-COUNT-2: call <1024 x float> @llvm.tensor.smma
; CHECK:       ke.loop:
; CHECK-NEXT:    %[[KE:.*]] = phi i64 [ 0,
; CHECK:         %[[K:.*]] = add i64 %[[KE]], 2
; CHECK-NEXT:    udiv i64 %[[K]], 2
; CHECK:         call <1024 x float> @llvm.tensor.smma
; CHECK:         icmp slt i64 %ke.next, 4
; CHECK:       ke.end:
define void @rounded(ptr noalias %r, ptr noalias %p, ptr noalias %q) {
  %a = call token @llvm.tensor.load(ptr elementtype(bfloat) %p, <3 x i32> <i32 3, i32 64, i32 64>, <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> zeroinitializer, <3 x i32> zeroinitializer)
  %b = call token @llvm.tensor.load(ptr elementtype(bfloat) %q, <3 x i32> <i32 3, i32 64, i32 32>, <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> zeroinitializer, <3 x i32> zeroinitializer)
  %c = call <2048 x float> @llvm.tensor.contract(token %a, token %b, <2 x i32> <i32 0, i32 2>, <2 x i32> <i32 0, i32 1>)
  %h = fptrunc <2048 x float> %c to <2048 x bfloat>
  %t = call token @llvm.tensor.typeinfo(<2048 x bfloat> %h, <2 x i32> <i32 64, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %r, token %t, <2 x i32> zeroinitializer)
  ret void
}
