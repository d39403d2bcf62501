; Windows for a matrix unit, in pairs of rows: a register is one or two lines, blended, and one permutation. A kernel
; of stage 2 computes one register; the loops around it become one function.
; RUN: grep -v '^;' %s > %t.ll && tlx-lower %t.ll --target=amx --check=1 -o %t.o.ll
; RUN: tlx-lower %t.ll --target=amx --stop-after=to-2d -o - | FileCheck %s
; RUN: tlx-lower %t.ll --target=amx --stop-after=to-tiles -o - | FileCheck %s --check-prefix=TILES
; RUN: tlx-lower %t.ll --target=amx --emit=asm -O2 -o - | FileCheck %s --check-prefix=ASM
; RUN: tlx-lower %t.ll --target=amx --threads=openmp --thread-cycles=1 --check=1 -o %t.threads.ll

; CHECK-LABEL: define void @short_rows(
; CHECK:         %line = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(bfloat) %{{.*}}, <2 x i32> <i32 1, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 {{[0-9]+}}>
; CHECK-NEXT:    %tovector = call <32 x bfloat> @llvm.tensor.tovector{{.*}}(token %line)
; CHECK-NEXT:    %permuted = shufflevector <32 x bfloat> %tovector, <32 x bfloat> undef, <32 x i32> <i32 0, i32 1, i32 1, i32 2, i32 2, i32 3, i32 3, i32 4, i32 4, i32 5, i32 5, i32 6, i32 6, i32 7, i32 9, i32 10,
; CHECK-NEXT:    %permuted.1 = call token @llvm.tensor.typeinfo.{{.*}}(<32 x bfloat> %permuted, <2 x i32> <i32 1, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT:    call void @llvm.tensor.store{{.*}}(ptr %to, token %permuted.1
; CHECK:         %rhs.strips = call token @llvm.tensor.load.p0.v4i32(ptr elementtype(bfloat) %x.buf, <4 x i32> <i32 4, i32 144, i32 16, i32 2>, <4 x i32> <i32 0, i32 1, i32 2, i32 3>, <4 x i32> <i32 0, i32 0, i32 0, i32 0>,
; CHECK-NEXT:    %[[FLAT:.*]] = call <18432 x bfloat> @llvm.tensor.reshape.permute{{.*}}(token %rhs.strips, <4 x i32> <i32 1, i32 3, i32 0, i32 2>, <2 x i32> <i32 288, i32 64>)
; CHECK-NEXT:    %rhs = call token @llvm.tensor.typeinfo{{.*}}(<18432 x bfloat> %[[FLAT]], <2 x i32> <i32 288, i32 64>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 15>)
; TILES-LABEL: define internal void @tlx.shuffle.32.bf16(ptr %to, ptr %x0)
; TILES:         %x = call token @llvm.tensor.load
; TILES-NEXT:    %x.line = call <32 x bfloat> @llvm.tensor.tovector
; TILES-NEXT:    %line = shufflevector <32 x bfloat> %x.line
; TILES-NEXT:    %line.1 = call token @llvm.tensor.typeinfo
; TILES-NEXT:    call void @llvm.tensor.store
; TILES-LABEL: define internal void @tlx.matmul.32x49x288
; TILES:         call token @llvm.tensor.load.p0.v4i32({{.*}}, <4 x i32> <i32 2, i32 16, i32 16, i32 2>, <4 x i32> <i32 0, i32 1, i32 2, i32 3>, <4 x i32> <i32 0, i32 0, i32 0, i32 0>, <4 x i32> <i32 0, i32 144, i32 16, i32 2>)
; TILES-LABEL: define internal void @tlx.nest.short_rows(
; TILES-COUNT-8: call void @tlx.shuffle.32.bf16
; ASM-LABEL:   tlx.nest.short_rows:
; ASM-NOT:     vpinsr
; ASM:         vpermw
; ASM-NOT:     vpinsr
; ASM:         retq
define void @short_rows(ptr noalias %y, ptr noalias %x, ptr noalias %w) {
  %a = call token @llvm.tensor.load(ptr elementtype(bfloat) %x, <4 x i32> <i32 1, i32 32, i32 9, i32 9>, <4 x i32> <i32 0, i32 1, i32 2, i32 3>, <4 x i32> zeroinitializer, <4 x i32> zeroinitializer)
  %b = call token @llvm.tensor.load(ptr elementtype(bfloat) %w, <4 x i32> <i32 32, i32 32, i32 3, i32 3>, <4 x i32> <i32 0, i32 1, i32 2, i32 3>, <4 x i32> zeroinitializer, <4 x i32> zeroinitializer)
  %v = call <1568 x float> @llvm.tensor.convolution(token %a, token %b, <2 x i32> <i32 1, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %t = call token @llvm.tensor.typeinfo(<1568 x float> %v, <4 x i32> <i32 1, i32 32, i32 7, i32 7>, <4 x i32> <i32 0, i32 1, i32 2, i32 3>, <4 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %y, token %t, <4 x i32> zeroinitializer)
  ret void
}

; Groups of four bytes with strides: elements of several rows fall into different lanes.
; CHECK-LABEL: define void @strides(
; CHECK:         %merged = shufflevector <64 x i8>
; CHECK:         %permuted{{.*}} = shufflevector <64 x i8>
; ASM-LABEL:   tlx.nest.strides:
; ASM-NOT:     vpinsr
; ASM:         vpermb
; ASM-NOT:     vpinsr
; ASM:         retq
define void @strides(ptr noalias %y, ptr noalias %x, ptr noalias %w) {
  %a = call token @llvm.tensor.load(ptr elementtype(i8) %x, <4 x i32> <i32 1, i32 64, i32 16, i32 30>, <4 x i32> <i32 0, i32 1, i32 2, i32 3>, <4 x i32> zeroinitializer, <4 x i32> zeroinitializer)
  %b = call token @llvm.tensor.load(ptr elementtype(i8) %w, <4 x i32> <i32 32, i32 64, i32 3, i32 3>, <4 x i32> <i32 0, i32 1, i32 2, i32 3>, <4 x i32> zeroinitializer, <4 x i32> zeroinitializer)
  %v = call <3136 x i32> @llvm.tensor.convolution(token %a, token %b, <2 x i32> <i32 2, i32 2>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %t = call token @llvm.tensor.typeinfo(<3136 x i32> %v, <4 x i32> <i32 1, i32 32, i32 7, i32 14>, <4 x i32> <i32 0, i32 1, i32 2, i32 3>, <4 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %y, token %t, <4 x i32> zeroinitializer)
  ret void
}
