; Every second element of a row, as windows with stride 2 read it: whole lines are loaded, and one shuffle selects
; from two of them. The last register overlaps the previous one, and its second line ends with the last element.
; RUN: grep -v '^;' %s > %t.ll && tlx-lower %t.ll --target=avx512 --check -o %t.o.ll
; RUN: FileCheck %s < %t.o.ll
; RUN: tlx-lower %t.ll --target=avx512 --stop-after=to-2d -o - | FileCheck %s --check-prefix=MATRIX
; RUN: tlx-lower %t.ll --target=avx512 --emit=asm -o - | FileCheck %s --check-prefix=ASM
; RUN: tlx-lower %t.ll --target=avx2 --check -o - | FileCheck %s --check-prefix=AVX2
; RUN: tlx-lower %t.ll --target=generic --check -o %t.generic.ll

; 28 of each row of 56 floats, of every second row: 16, and the last 16.
; MATRIX-LABEL: define void @image(
; MATRIX:         call token @llvm.tensor.load{{.*}}, <2 x i32> <i32 28, i32 1>, {{.*}}<2 x i32> <i32 0, i32 2>)
; CHECK-LABEL: define internal void @tlx.nest.image(
; CHECK:         %[[A:.*]] = load <16 x float>, ptr %from
; CHECK:         %[[B:.*]] = load <16 x float>
; CHECK:         shufflevector <16 x float> %[[A]], <16 x float> %[[B]], <16 x i32> <i32 0, i32 2, i32 4, i32 6, i32 8, i32 10, i32 12, i32 14, i32 16, i32 18,
; CHECK:         store <16 x float>
; CHECK:         %[[P:.*]] = getelementptr inbounds float, ptr %from, i64 24
; CHECK-NEXT:    %[[C:.*]] = load <16 x float>, ptr %[[P]]
; CHECK-NEXT:    %[[Q:.*]] = getelementptr inbounds float, ptr %[[P]], i64 15
; CHECK-NEXT:    %[[D:.*]] = load <16 x float>, ptr %[[Q]]
; CHECK-NEXT:    shufflevector <16 x float> %[[C]], <16 x float> %[[D]], <16 x i32> <i32 0, i32 2, i32 4, i32 6, i32 8, i32 10, i32 12, i32 14, i32 17, i32 19,
; CHECK:         %[[T:.*]] = getelementptr inbounds float, ptr %to, i64 12
; CHECK-NEXT:    store <16 x float> %{{.*}}, ptr %[[T]]
; CHECK-NOT:     load
; CHECK:         ret void
; ASM-LABEL:   tlx.nest.image:
; ASM-COUNT-2:   {{vpermt2ps|vpermi2ps}}
; ASM-NOT:       {{vpermt2ps|vpermi2ps|vinsertps}}
; ASM:           ret
; AVX2-LABEL:  define internal void @tlx.nest.image(
; AVX2-COUNT-2:  shufflevector <8 x float>
define void @image(ptr noalias %p, ptr noalias %q, ptr noalias %r) {
  %x = call token @llvm.tensor.load(ptr elementtype(float) %p, <4 x i32> <i32 1, i32 4, i32 56, i32 56>, <4 x i32> <i32 0, i32 1, i32 2, i32 3>, <4 x i32> zeroinitializer, <4 x i32> zeroinitializer)
  %w = call token @llvm.tensor.load(ptr elementtype(float) %q, <4 x i32> <i32 32, i32 4, i32 1, i32 1>, <4 x i32> <i32 0, i32 1, i32 2, i32 3>, <4 x i32> zeroinitializer, <4 x i32> zeroinitializer)
  %y = call <25088 x float> @llvm.tensor.convolution(token %x, token %w, <2 x i32> <i32 2, i32 2>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  store <25088 x float> %y, ptr %r
  ret void
}

; Two columns of bytes: 35 rows are a register of 32 and the last 32.
; CHECK-LABEL: define internal void @tlx.nest.columns(
; CHECK-COUNT-2: load <32 x i8>
; CHECK:         shufflevector <32 x i8> {{.*}} <i32 0, i32 2, i32 4,
; CHECK-COUNT-2: load <32 x i8>
; CHECK:         shufflevector <32 x i8>
; CHECK-NOT:     load
; CHECK:         ret void
define void @columns(ptr noalias %x, ptr noalias %c) {
  %t = call token @llvm.tensor.load(ptr elementtype(i8) %x, <3 x i32> <i32 8, i32 35, i32 2>, <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> zeroinitializer, <3 x i32> zeroinitializer)
  %v = call <560 x i8> @llvm.tensor.reshape.permute(token %t, <3 x i32> <i32 0, i32 2, i32 1>, <2 x i32> <i32 16, i32 35>)
  store <560 x i8> %v, ptr %c
  ret void
}

; Rows of three are copied element by element, as before.
; MATRIX-LABEL: define void @few(
; MATRIX-NOT:     <2 x i32> <i32 3, i32 1>, {{.*}}<2 x i32> <i32 0, i32 2>)
define void @few(ptr noalias %x, ptr noalias %c) {
  %t = call token @llvm.tensor.load(ptr elementtype(float) %x, <3 x i32> <i32 8, i32 3, i32 2>, <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> zeroinitializer, <3 x i32> zeroinitializer)
  %v = call <48 x float> @llvm.tensor.reshape.permute(token %t, <3 x i32> <i32 0, i32 2, i32 1>, <2 x i32> <i32 16, i32 3>)
  store <48 x float> %v, ptr %c
  ret void
}
