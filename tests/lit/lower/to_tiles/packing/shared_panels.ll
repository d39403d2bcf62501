; A convolution's weights are packed once, before the loop over its rows.
; RUN: grep -v '^;' %s | tlx-lower - --target=amx --stop-after=to-tiles -o - | FileCheck %s
; RUN: grep -v '^;' %s | tlx-lower - --target=amx -o - | FileCheck %s --check-prefix=PLAIN --implicit-check-not=tlx.independent

; CHECK-LABEL: define void @f(
; CHECK:         %panels.buf = getelementptr inbounds i8,
; CHECK:         call void @tlx.matmul.32x64x3x192.bf16.bf16.f32.pack(ptr %panels.buf, ptr %w)
; CHECK-NEXT:    call void @tlx.nest.f(
; CHECK:       define internal void @tlx.matmul.32x64x3x192.bf16.bf16.f32.pack(ptr noalias %panels, ptr %b)
; CHECK:         @llvm.tensor.reshape.block
; CHECK:       define internal void @tlx.matmul.32x64x3x192.bf16.bf16.f32(
; CHECK-NOT:     @llvm.tensor.reshape.block.{{.*}}(token
; CHECK:       define internal void @tlx.nest.f(
; CHECK:         br i1 %{{.*}}, label %batch.loop, label %batch.end, !tlx.independent !{}

; PLAIN-LABEL: define internal void @tlx.nest.f(
; PLAIN:         llvm.x86.tdpbf16ps(
define void @f(ptr noalias %c, ptr noalias %x, ptr noalias %w) {
  %a = call token @llvm.tensor.load(ptr elementtype(bfloat) %x, <4 x i32> <i32 1, i32 10, i32 34, i32 64>, <4 x i32> <i32 0, i32 2, i32 3, i32 1>, <4 x i32> zeroinitializer, <4 x i32> zeroinitializer)
  %b = call token @llvm.tensor.load(ptr elementtype(bfloat) %w, <4 x i32> <i32 3, i32 3, i32 64, i32 64>, <4 x i32> <i32 2, i32 3, i32 1, i32 0>, <4 x i32> zeroinitializer, <4 x i32> zeroinitializer)
  %p = call <16384 x float> @llvm.tensor.convolution(token %a, token %b, <4 x i32> <i32 1, i32 1, i32 1, i32 1>, <4 x i32> zeroinitializer, <4 x i32> zeroinitializer)
  %t = call token @llvm.tensor.typeinfo(<16384 x float> %p, <4 x i32> <i32 1, i32 64, i32 8, i32 32>, <4 x i32> <i32 0, i32 1, i32 2, i32 3>, <4 x i32> zeroinitializer)
  %q = call <16384 x float> @llvm.tensor.transpose(token %t, <4 x i32> <i32 0, i32 2, i32 3, i32 1>)
  %r = call token @llvm.tensor.typeinfo(<16384 x float> %q, <4 x i32> <i32 1, i32 8, i32 32, i32 64>, <4 x i32> <i32 0, i32 2, i32 3, i32 1>, <4 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %r, <4 x i32> zeroinitializer)
  ret void
}
