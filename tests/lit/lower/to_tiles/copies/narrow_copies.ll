; Transposing copies of narrow elements: a few rows are interleaved as for dot products, and odd numbers of columns are
; loaded and stored whole, with masks, not element by element.
; RUN: grep -v '^;' %s | tlx-lower - --target=avx512 --stop-after=to-tiles -o - | FileCheck %s
; RUN: grep -v '^;' %s | tlx-lower - --target=avx512 -o - | FileCheck %s --check-prefix=MASKS
; RUN: grep -v '^;' %s > %t.ll && tlx-lower %t.ll --target=avx512 --check -o %t.o.ll
; RUN: tlx-lower %t.ll --target=avx2 --check -o %t.o.ll

; CHECK-LABEL: define internal void @tlx.transpose.2x14.bf16(
; CHECK:         %x = call token @llvm.tensor.load{{.*}}, <2 x i32> <i32 2, i32 16>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 2>, <2 x i32> <i32 0, i32 14>)
; CHECK-NEXT:    %x.vnni = call <32 x bfloat> @llvm.tensor.reshape.block{{.*}}(token %x, <1 x i32> <i32 0>, <1 x i32> <i32 2>)
; CHECK:         call void @llvm.tensor.store{{.*}}, <2 x i32> <i32 0, i32 0>)
; MASKS-LABEL: define internal void @tlx.transpose.2x14.bf16(
; MASKS-COUNT-2: call <16 x {{.*}}> @llvm.masked.load
; MASKS:         call void @llvm.masked.store.v32
define void @pairs(ptr noalias %p, ptr noalias %q) {
  %x = call token @llvm.tensor.load(ptr elementtype(bfloat) %p, <2 x i32> <i32 2, i32 14>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %v = call <28 x bfloat> @llvm.tensor.transpose(token %x, <2 x i32> <i32 1, i32 0>)
  %t = call token @llvm.tensor.typeinfo(<28 x bfloat> %v, <2 x i32> <i32 14, i32 2>, <2 x i32> <i32 1, i32 0>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %q, token %t, <2 x i32> zeroinitializer)
  ret void
}

; CHECK-LABEL: define internal void @tlx.transpose.32x9.bf16(
; CHECK:         call token @llvm.tensor.load{{.*}}, <2 x i32> <i32 16, i32 16>, <2 x i32> <i32 1, i32 0>, <2 x i32> <i32 0, i32 7>, <2 x i32> <i32 0, i32 10>)
define void @taps(ptr noalias %p, ptr noalias %q) {
  %x = call token @llvm.tensor.load(ptr elementtype(bfloat) %p, <2 x i32> <i32 32, i32 9>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> <i32 0, i32 10>)
  %v = call <288 x bfloat> @llvm.tensor.transpose(token %x, <2 x i32> <i32 1, i32 0>)
  %t = call token @llvm.tensor.typeinfo(<288 x bfloat> %v, <2 x i32> <i32 9, i32 32>, <2 x i32> <i32 1, i32 0>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %q, token %t, <2 x i32> zeroinitializer)
  ret void
}

; A single last column: rows beyond the matrix are not read.
; CHECK-LABEL: define internal void @tlx.transpose.17x3.i8(
; CHECK:         %x = call token @llvm.tensor.load{{.*}}, <2 x i32> <i32 16, i32 4>, <2 x i32> <i32 1, i32 0>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 4>)
; CHECK:         %x.1 = call token @llvm.tensor.load{{.*}}, <2 x i32> <i32 4, i32 1>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 1, i32 0>,
define void @last(ptr noalias %p, ptr noalias %q) {
  %x = call token @llvm.tensor.load(ptr elementtype(i8) %p, <2 x i32> <i32 17, i32 3>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> <i32 0, i32 4>)
  %v = call <51 x i8> @llvm.tensor.transpose(token %x, <2 x i32> <i32 1, i32 0>)
  %t = call token @llvm.tensor.typeinfo(<51 x i8> %v, <2 x i32> <i32 3, i32 17>, <2 x i32> <i32 1, i32 0>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %q, token %t, <2 x i32> zeroinitializer)
  ret void
}
