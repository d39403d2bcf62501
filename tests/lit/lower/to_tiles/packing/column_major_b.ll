; A column-major B is packed by transposing tiles with as many rows of K as a register has lanes, and a remainder.
;
;     K = 6 = 4 + 2
;
; RUN: grep -v '^;' %s | tlx-lower - -o - --target=generic --stop-after=to-tiles | FileCheck %s

; CHECK: k.loop:
; CHECK-NEXT: %{{.*}} = phi i64 [ 0, %ir.loop ], [ %{{.*}}, %k.loop ]
; CHECK: k.end:
; CHECK-NEXT: %[[C_1:.*]] = call token @llvm.tensor.typeinfo.v[[SIZE:[0-9]+]]f32.v2i32(<[[SIZE]] x float> %{{.*}}, <2 x i32> <i32 {{[0-9]+}}, i32 {{[0-9]+}}>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK: call void @llvm.tensor.store.p0.v2i32(ptr %{{.*}}, token %[[C_1]], <2 x i32> <i32 0, i32 32>)

define void @f(ptr noalias %c, ptr %a, ptr %b) {
  %lhs = call token @llvm.tensor.load(ptr elementtype(float) %a, <2 x i32> <i32 8, i32 6>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %rhs = call token @llvm.tensor.load(ptr elementtype(float) %b, <2 x i32> <i32 32, i32 6>, <2 x i32> <i32 1, i32 0>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <256 x float> @llvm.tensor.matmul(token %lhs, token %rhs)
  %t = call token @llvm.tensor.typeinfo(<256 x float> %m, <2 x i32> <i32 8, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}
