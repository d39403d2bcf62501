; A product of run-time size: checks, and a helper that packs both operands and writes directly to the destination.
; RUN: grep -v '^;' %s | tlx-lower - --stop-after=to-2d --target=generic -o - | FileCheck %s

; CHECK-LABEL: define void @gemm(
; CHECK-NOT:     alloca
; CHECK:         call void @tlx.dynamic.check(i1 %{{.*}})
; CHECK:         call void @tlx.dynamic.smma.f32.f32.f32.rc(ptr %c, i64 %extent{{.*}}, ptr %a, i64 %extent{{.*}}, i64 1, ptr %b, i64 1, i64 %extent{{.*}})
; CHECK-NEXT:    ret void
define void @gemm(ptr %a, ptr %b, ptr %c, i32 %m, i32 %n, i32 %k) {
  %m. = insertelement <2 x i32> undef, i32 %m, i32 0
  %n. = insertelement <2 x i32> undef, i32 %n, i32 0
  %mk = insertelement <2 x i32> %m., i32 %k, i32 1
  %nk = insertelement <2 x i32> %n., i32 %k, i32 1
  %mn = insertelement <2 x i32> %m., i32 %n, i32 1
  %x = call token @llvm.tensor.load(ptr elementtype(float) %a, <2 x i32> %mk, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %y = call token @llvm.tensor.load(ptr elementtype(float) %b, <2 x i32> %nk, <2 x i32> <i32 1, i32 0>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %p = call <vscale x 1 x float> @llvm.tensor.matmul(token %x, token %y)
  %t = call token @llvm.tensor.typeinfo(<vscale x 1 x float> %p, <2 x i32> %mn, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}

; CHECK-LABEL: define internal void @tlx.dynamic.check(i1 %valid) nounwind {
; CHECK-NEXT:  entry:
; CHECK-NEXT:    br i1 %valid, label %end, label %trap
; CHECK:       trap:
; CHECK-NEXT:    call void @llvm.trap()
; CHECK-NEXT:    unreachable

; Blocks of B are column-major, like B.
; CHECK-LABEL: define internal void @tlx.dynamic.smma.f32.f32.f32.rc(
; CHECK:         %memory = call noalias ptr @malloc(
; CHECK:         %a.blocks = getelementptr inbounds i8, ptr %memory, i64 %{{.*}}
; CHECK:         %b.blocks = getelementptr inbounds i8, ptr %b.memory, i64 %{{.*}}
; CHECK-NOT:     @malloc(
; CHECK:         token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %b.block, <2 x i32> <i32 64, i32 256>, <2 x i32> <i32 1, i32 0>
; CHECK:         call <4096 x float> @llvm.tensor.smma.v4096f32(
; CHECK:         call void @free(ptr %memory)
; CHECK-NOT: vscale
