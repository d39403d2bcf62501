; Eight columns are half a register: sums over even and odd positions of K fill it. Pairs of B's rows are interleaved, in
; registers if there are few, else in memory; pairs of A are broadcast by loads.
;
; REQUIRES: split-file
; RUN: split-file %s %t
; RUN: tlx-lower %t/few.ll --target=avx512 --stop-after=to-tiles --remarks -o - 2>&1 | FileCheck %s --check-prefix=FEW
; RUN: tlx-lower %t/rest.ll --target=avx512 --stop-after=to-tiles --remarks -o - 2>&1 | FileCheck %s --check-prefix=REST
; RUN: tlx-lower %t/rest.ll --target=avx512 --threads=openmp --stop-after=to-tiles -o - | FileCheck %s --check-prefix=THREADS

; FEW: remark: matmul 8x8x8 float: {{.*}}; the last 8 columns are summed by pairs along K
; FEW-LABEL: define internal void @tlx.matmul.8x8x8.f32.f32.f32(
; FEW-NOT:     alloca
; FEW:         call token @llvm.tensor.load{{.*}} %b, <2 x i32> <i32 4, i32 16>
; FEW:         %[[PAIRS:.*]] = call <64 x float> @llvm.tensor.reshape.permute{{.*}}, <5 x i32> <i32 0, i32 1, i32 3, i32 2, i32 4>
; FEW-COUNT-4: shufflevector <64 x float> %[[PAIRS]],
; FEW:         %[[A:.*]] = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %a, <2 x i32> <i32 1, i32 2>
; FEW:         %[[X:.*]] = call <16 x float> @llvm.tensor.broadcast{{.*}}(token %[[A]], <2 x i32> <i32 8, i32 2>
; FEW-COUNT-32: call <16 x float> @llvm.fma.v16f32(
; FEW:         %[[C:.*]] = call <64 x float> @llvm.tensor.reduce.add{{.*}}, <2 x i32> <i32 1, i32 2>, <2 x i32> <i32 1, i32 2>)
; FEW:         typeinfo.v64f32.v2i32(<64 x float> %[[C]], <2 x i32> <i32 8, i32 8>

; REST: remark: matmul 48x37x48 float: {{.*}}; the last 5 columns are summed by pairs along K
; REST-LABEL: define internal void @tlx.matmul.48x37x48.f32.f32.f32(
; REST:         alloca
; REST:         load.p0.v2i32(ptr elementtype(float) %{{.*}}, <2 x i32> <i32 8, i32 8>, {{.*}}, <2 x i32> <i32 0, i32 3>
; REST:         llvm.tensor.reshape.block{{.*}}, <1 x i32> <i32 2>)
; REST:         llvm.tensor.smma
; REST:       kk.loop:
; REST:         call <16 x float> @llvm.fma.v16f32(

; THREADS-NOT: kk.loop

;--- few.ll
define void @f(ptr noalias %c, ptr %a, ptr %b) {
  %x = call token @llvm.tensor.load(ptr elementtype(float) %a, <2 x i32> <i32 8, i32 8>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %y = call token @llvm.tensor.load(ptr elementtype(float) %b, <2 x i32> <i32 8, i32 8>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <64 x float> @llvm.tensor.matmul(token %x, token %y)
  %t = call token @llvm.tensor.typeinfo(<64 x float> %m, <2 x i32> <i32 8, i32 8>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}

;--- rest.ll
define void @f(ptr noalias %c, ptr %a, ptr %b) {
  %x = call token @llvm.tensor.load(ptr elementtype(float) %a, <2 x i32> <i32 48, i32 48>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %y = call token @llvm.tensor.load(ptr elementtype(float) %b, <2 x i32> <i32 48, i32 37>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <1776 x float> @llvm.tensor.matmul(token %x, token %y)
  %t = call token @llvm.tensor.typeinfo(<1776 x float> %m, <2 x i32> <i32 48, i32 37>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}
