; A convolution that copies its input writes the border into the copy: the padded input has no buffer. The input is
; copied in blocks of rows here; rows outside of it are filled.
; RUN: grep -v '^;' %s | tlx-lower - --stop-after=to-2d --target=avx512 -o - | FileCheck %s
; RUN: grep -v '^;' %s | tlx-lower - --stop-after=to-2d --target=avx512 --threads=openmp -o - | FileCheck %s --check-prefix=WHOLE
; RUN: grep -v '^;' %s | tlx-lower - --target=avx512 --remarks -o %t 2>&1 | FileCheck %s --check-prefix=REMARK

; CHECK-LABEL: define void @border(
; CHECK-NOT:     %p.buf
; CHECK:         %last.buf = 
; CHECK-NOT:     %p.buf
; CHECK:       part.loop:
; CHECK:       row.loop:
; CHECK:         %[[INSIDE:.*]] = icmp ult i64 %[[AT:.*]], 3136
; CHECK-NEXT:    br i1 %[[INSIDE]], label %inside, label %border
; CHECK:       inside:
; CHECK-NEXT:    %[[FROM:.*]] = getelementptr inbounds float, ptr %x, i64 %[[AT]]
; CHECK:         call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %[[FROM]], <2 x i32> <i32 128, i32 56>, {{.*}}, <2 x i32> <i32 0, i32 3136>)
; CHECK:       border:
; CHECK-NEXT:    call void @llvm.memset

; WHOLE-LABEL: define void @border(
; WHOLE-NOT:     %p.buf
; WHOLE-NOT:     row.loop:

; REMARK-NOT:  for pad
; REMARK:      copy of {{.*}} of operand x
; REMARK-NOT:  for pad
define void @border(ptr noalias %x, ptr noalias %w, ptr noalias %y) {
  %a = call token @llvm.tensor.load(ptr elementtype(float) %x, <4 x i32> <i32 1, i32 128, i32 56, i32 56>, <4 x i32> <i32 0, i32 1, i32 2, i32 3>, <4 x i32> zeroinitializer, <4 x i32> zeroinitializer)
  %p = call <430592 x float> @llvm.tensor.pad(token %a, <4 x i32> <i32 0, i32 0, i32 1, i32 1>, <4 x i32> <i32 0, i32 0, i32 1, i32 1>, float 0.0)
  %q = call token @llvm.tensor.typeinfo(<430592 x float> %p, <4 x i32> <i32 1, i32 128, i32 58, i32 58>, <4 x i32> <i32 0, i32 1, i32 2, i32 3>, <4 x i32> zeroinitializer)
  %b = call token @llvm.tensor.load(ptr elementtype(float) %w, <4 x i32> <i32 128, i32 128, i32 3, i32 3>, <4 x i32> <i32 0, i32 1, i32 2, i32 3>, <4 x i32> zeroinitializer, <4 x i32> zeroinitializer)
  %c = call <100352 x float> @llvm.tensor.convolution(token %q, token %b, <2 x i32> <i32 2, i32 2>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  store <100352 x float> %c, ptr %y
  ret void
}
