; A product of two column-major matrices is computed as its transpose: both are read in place, and tiles of eight rows
; are stored column by column, 16 bytes at a time, by a loop over their registers, which tiles of both widths share. Each
; part of K prefetches six columns of the next tile of C.
;
; RUN: grep -v '^;' %s | tlx-lower - -o - --target=avx512 --stop-after=to-tiles --remarks=%t.remarks | FileCheck %s
; RUN: FileCheck %s --check-prefix=REMARKS < %t.remarks
; RUN: grep -v '^;' %s | tlx-lower - --emit=asm --target=avx512 -o - | FileCheck %s --check-prefix=ASM --implicit-check-not=vperm

; REMARKS: remark: matmul 480x512x512 float:{{.*}} register tile 8x48, nothing packed,{{.*}}; C stored column by column

; CHECK-LABEL: define void @f(
; CHECK: call void @tlx.matmul.480x512x512.f32.f32.f32(ptr %c, ptr %b, ptr %a)
; CHECK-LABEL: define internal void @tlx.matmul.480x512x512.f32.f32.f32(
; CHECK: part.loop:
; CHECK-COUNT-6: call void @llvm.prefetch.p0(ptr %{{.*}}, i32 0, i32 2, i32 1)
; CHECK: call <384 x float> @llvm.tensor.smma
; CHECK: call void @llvm.tensor.store.p0.v2i32(ptr %scratch, token
; CHECK: call void @tlx.matmul.480x512x512.f32.f32.f32.epilogue(ptr %scratch, ptr %{{.*}}, i64 3)
; CHECK: call void @tlx.matmul.480x512x512.f32.f32.f32.epilogue(ptr %scratch, ptr %{{.*}}, i64 2)
; CHECK-LABEL: define internal void @tlx.matmul.480x512x512.f32.f32.f32.epilogue(
; CHECK: er.loop:
; CHECK: %[[COLUMNS:.*]] = call <128 x float> @llvm.tensor.transpose.v128f32.v2i32(token %{{.*}}, <2 x i32> <i32 1, i32 0>)
; CHECK-NEXT: %[[C:.*]] = call token @llvm.tensor.typeinfo.v128f32.v2i32(<128 x float> %[[COLUMNS]], <2 x i32> <i32 16, i32 8>, <2 x i32> <i32 1, i32 0>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT: call void @llvm.tensor.store.p0.v2i32(ptr %{{.*}}, token %[[C]], <2 x i32> <i32 0, i32 480>)
; CHECK: icmp slt i64 %er.next, %n

; ASM: vunpck{{[lh]}}ps
; ASM: vextractf32x4 $3, %zmm{{[0-9]+}}, {{.*}}(%r

define void @f(ptr noalias %c, ptr %a, ptr %b) {
  %lhs = call token @llvm.tensor.load(ptr elementtype(float) %a, <2 x i32> <i32 512, i32 512>, <2 x i32> <i32 1, i32 0>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %rhs = call token @llvm.tensor.load(ptr elementtype(float) %b, <2 x i32> <i32 480, i32 512>, <2 x i32> <i32 1, i32 0>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <245760 x float> @llvm.tensor.matmul(token %lhs, token %rhs)
  %t = call token @llvm.tensor.typeinfo(<245760 x float> %m, <2 x i32> <i32 512, i32 480>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}
