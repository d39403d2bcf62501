; Softmax of more than L1 holds: while a row's exponentials are computed, the next row is prefetched, as nothing
; else is read then. Rows that fit are not prefetched.
;
; REQUIRES: split-file
; RUN: split-file %s %t
; RUN: grep -v '^;' %t/large.ll | tlx-lower - -o - --target=avx512 | FileCheck %t/large.ll
; RUN: grep -v '^;' %t/small.ll | tlx-lower - -o - --target=avx512 | FileCheck %t/small.ll

;--- large.ll
; CHECK: call <16 x float> @llvm.x86.avx512.mask.scalef.ps.512
; CHECK-COUNT-4: call void @llvm.prefetch
; CHECK-NOT: call void @llvm.prefetch


define dso_local void @work(ptr noalias %y, ptr noalias %x) nounwind {
entry:
  %x.t = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %x, <2 x i32> <i32 1024, i32 1024>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 0>)
  %tovector = call <1048576 x float> @llvm.tensor.tovector.v1048576f32(token %x.t)
  %max = call <1024 x float> @llvm.tensor.reduce.max.v1024f32.v2i32(token %x.t, <2 x i32> <i32 1, i32 1024>, <2 x i32> <i32 1, i32 1>)
  %tensor = call token @llvm.tensor.typeinfo.v1024f32.v2i32(<1024 x float> %max, <2 x i32> <i32 1024, i32 1>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
  %broadcast = call <1048576 x float> @llvm.tensor.broadcast.v1048576f32.v2i32.v2i32(token %tensor, <2 x i32> <i32 1024, i32 1024>, <2 x i32> <i32 0, i32 1>)
  %t = fsub <1048576 x float> %tovector, %broadcast
  %tensor.1 = call token @llvm.tensor.typeinfo.v1048576f32.v2i32(<1048576 x float> %t, <2 x i32> <i32 1024, i32 1024>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
  %exp = call <1048576 x float> @llvm.tensor.exp.v1048576f32(token %tensor.1)
  %tensor.2 = call token @llvm.tensor.typeinfo.v1048576f32.v2i32(<1048576 x float> %exp, <2 x i32> <i32 1024, i32 1024>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
  %add = call <1024 x float> @llvm.tensor.reduce.add.v1024f32.v2i32(token %tensor.2, <2 x i32> <i32 1, i32 1024>, <2 x i32> <i32 1, i32 1>)
  %tensor.3 = call token @llvm.tensor.typeinfo.v1024f32.v2i32(<1024 x float> %add, <2 x i32> <i32 1024, i32 1>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
  %broadcast.1 = call <1048576 x float> @llvm.tensor.broadcast.v1048576f32.v2i32.v2i32(token %tensor.3, <2 x i32> <i32 1024, i32 1024>, <2 x i32> <i32 0, i32 1>)
  %t.1 = fdiv <1048576 x float> %exp, %broadcast.1
  %tensor.4 = call token @llvm.tensor.typeinfo.v1048576f32.v2i32(<1048576 x float> %t.1, <2 x i32> <i32 1024, i32 1024>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
  call void @llvm.tensor.store.p0.v2i32(ptr %y, token %tensor.4, <2 x i32> <i32 0, i32 0>)
  ret void
}

declare token @llvm.tensor.load.p0.v2i32(ptr, <2 x i32>, <2 x i32>, <2 x i32>, <2 x i32>) argmemonly nounwind readonly

declare <1048576 x float> @llvm.tensor.tovector.v1048576f32(token) nounwind readnone speculatable willreturn

declare <1024 x float> @llvm.tensor.reduce.max.v1024f32.v2i32(token, <2 x i32>, <2 x i32>) nounwind readnone speculatable willreturn

declare token @llvm.tensor.typeinfo.v1024f32.v2i32(<1024 x float>, <2 x i32>, <2 x i32>, <2 x i32>) nounwind readnone

declare <1048576 x float> @llvm.tensor.broadcast.v1048576f32.v2i32.v2i32(token, <2 x i32>, <2 x i32>) nounwind readnone speculatable willreturn

declare token @llvm.tensor.typeinfo.v1048576f32.v2i32(<1048576 x float>, <2 x i32>, <2 x i32>, <2 x i32>) nounwind readnone

declare <1048576 x float> @llvm.tensor.exp.v1048576f32(token) nounwind readnone speculatable willreturn

declare <1024 x float> @llvm.tensor.reduce.add.v1024f32.v2i32(token, <2 x i32>, <2 x i32>) nounwind readnone speculatable willreturn

declare void @llvm.tensor.store.p0.v2i32(ptr, token, <2 x i32>) argmemonly nounwind willreturn writeonly
;--- small.ll
; CHECK-NOT: llvm.prefetch


define dso_local void @work(ptr noalias %y, ptr noalias %x) nounwind {
entry:
  %x.t = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %x, <2 x i32> <i32 8, i32 1024>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 0>)
  %tovector = call <8192 x float> @llvm.tensor.tovector.v8192f32(token %x.t)
  %max = call <8 x float> @llvm.tensor.reduce.max.v8f32.v2i32(token %x.t, <2 x i32> <i32 1, i32 1024>, <2 x i32> <i32 1, i32 1>)
  %tensor = call token @llvm.tensor.typeinfo.v8f32.v2i32(<8 x float> %max, <2 x i32> <i32 8, i32 1>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
  %broadcast = call <8192 x float> @llvm.tensor.broadcast.v8192f32.v2i32.v2i32(token %tensor, <2 x i32> <i32 8, i32 1024>, <2 x i32> <i32 0, i32 1>)
  %t = fsub <8192 x float> %tovector, %broadcast
  %tensor.1 = call token @llvm.tensor.typeinfo.v8192f32.v2i32(<8192 x float> %t, <2 x i32> <i32 8, i32 1024>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
  %exp = call <8192 x float> @llvm.tensor.exp.v8192f32(token %tensor.1)
  %tensor.2 = call token @llvm.tensor.typeinfo.v8192f32.v2i32(<8192 x float> %exp, <2 x i32> <i32 8, i32 1024>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
  %add = call <8 x float> @llvm.tensor.reduce.add.v8f32.v2i32(token %tensor.2, <2 x i32> <i32 1, i32 1024>, <2 x i32> <i32 1, i32 1>)
  %tensor.3 = call token @llvm.tensor.typeinfo.v8f32.v2i32(<8 x float> %add, <2 x i32> <i32 8, i32 1>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
  %broadcast.1 = call <8192 x float> @llvm.tensor.broadcast.v8192f32.v2i32.v2i32(token %tensor.3, <2 x i32> <i32 8, i32 1024>, <2 x i32> <i32 0, i32 1>)
  %t.1 = fdiv <8192 x float> %exp, %broadcast.1
  %tensor.4 = call token @llvm.tensor.typeinfo.v8192f32.v2i32(<8192 x float> %t.1, <2 x i32> <i32 8, i32 1024>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
  call void @llvm.tensor.store.p0.v2i32(ptr %y, token %tensor.4, <2 x i32> <i32 0, i32 0>)
  ret void
}

declare token @llvm.tensor.load.p0.v2i32(ptr, <2 x i32>, <2 x i32>, <2 x i32>, <2 x i32>) argmemonly nounwind readonly

declare <8192 x float> @llvm.tensor.tovector.v8192f32(token) nounwind readnone speculatable willreturn

declare <8 x float> @llvm.tensor.reduce.max.v8f32.v2i32(token, <2 x i32>, <2 x i32>) nounwind readnone speculatable willreturn

declare token @llvm.tensor.typeinfo.v8f32.v2i32(<8 x float>, <2 x i32>, <2 x i32>, <2 x i32>) nounwind readnone

declare <8192 x float> @llvm.tensor.broadcast.v8192f32.v2i32.v2i32(token, <2 x i32>, <2 x i32>) nounwind readnone speculatable willreturn

declare token @llvm.tensor.typeinfo.v8192f32.v2i32(<8192 x float>, <2 x i32>, <2 x i32>, <2 x i32>) nounwind readnone

declare <8192 x float> @llvm.tensor.exp.v8192f32(token) nounwind readnone speculatable willreturn

declare <8 x float> @llvm.tensor.reduce.add.v8f32.v2i32(token, <2 x i32>, <2 x i32>) nounwind readnone speculatable willreturn

declare void @llvm.tensor.store.p0.v2i32(ptr, token, <2 x i32>) argmemonly nounwind willreturn writeonly
