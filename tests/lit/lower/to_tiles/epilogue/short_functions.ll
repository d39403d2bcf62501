; With --bf16-intermediates=float, a function that the program computes in float has an error of 2^-14 where its result is
; only multiplied before the product is rounded to bfloat. A factor of a sum, or of a float, keeps the accuracy of float.
;
; RUN: grep -v '^;' %s | tlx-lower - -o - --target=avx512 --stop-after=to-tiles --bf16-intermediates=float | FileCheck %s
; RUN: grep -v '^;' %s | tlx-lower - -o - --target=avx512 --stop-after=to-tiles | FileCheck %s --check-prefix=EXACT
; RUN: tlx-lower %s -o /dev/null --target=avx512 --bf16-intermediates=float --check

; CHECK: define internal void @tlx.map.1x64.bf16(
; CHECK: @llvm.tensor.sigmoid.v64f32(token %{{[^,]*}}), !tlx.short !{}{{$}}
; CHECK: define internal void @tlx.map.1x64.bf16.1(
; CHECK: @llvm.tensor.sigmoid.v64f32(token %{{[^,]*}}){{$}}
; CHECK: define internal void @tlx.map.1x64.f32(
; CHECK: @llvm.tensor.sigmoid.v64f32(token %{{[^,]*}}){{$}}
; x / 2 * (1 + tanh x) is x sigmoid(2 x) there, in which nothing cancels.
; CHECK: define internal void @tlx.map.1x64.bf16.2(
; CHECK: %[[X:.*]] = call <[[N:[0-9]+]] x float> @llvm.tensor.tovector
; CHECK: fmul contract <[[N]] x float> %[[X]], <float {{(2|0x4000000)}}
; CHECK: %[[GATE:.*]] = call <[[N]] x float> @llvm.tensor.sigmoid.v[[N]]f32(token %{{.*}}), !tlx.short !{}, !tlx.no_subnormals !{}
; CHECK-NEXT: fmul contract <[[N]] x float> %[[X]], %[[GATE]]
; CHECK-NEXT: fptrunc
; EXACT-NOT: !tlx.short

define void @factor(ptr %x, ptr noalias %y) {
  %t = call token @llvm.tensor.load(ptr elementtype(float) %x, <1 x i32> <i32 64>, <1 x i32> zeroinitializer, <1 x i32> zeroinitializer, <1 x i32> zeroinitializer)
  %v = call <64 x float> @llvm.tensor.tovector(token %t)
  %s = call <64 x float> @llvm.tensor.sigmoid(token %t)
  %p = fmul <64 x float> %v, %s
  %r = fptrunc <64 x float> %p to <64 x bfloat>
  %u = call token @llvm.tensor.typeinfo(<64 x bfloat> %r, <1 x i32> <i32 64>, <1 x i32> zeroinitializer, <1 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %y, token %u, <1 x i32> zeroinitializer)
  ret void
}

define void @sum(ptr %x, ptr noalias %y) {
  %t = call token @llvm.tensor.load(ptr elementtype(float) %x, <1 x i32> <i32 64>, <1 x i32> zeroinitializer, <1 x i32> zeroinitializer, <1 x i32> zeroinitializer)
  %v = call <64 x float> @llvm.tensor.tovector(token %t)
  %s = call <64 x float> @llvm.tensor.sigmoid(token %t)
  %p = fadd <64 x float> %v, %s
  %r = fptrunc <64 x float> %p to <64 x bfloat>
  %u = call token @llvm.tensor.typeinfo(<64 x bfloat> %r, <1 x i32> <i32 64>, <1 x i32> zeroinitializer, <1 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %y, token %u, <1 x i32> zeroinitializer)
  ret void
}

define void @float(ptr %x, ptr noalias %y) {
  %t = call token @llvm.tensor.load(ptr elementtype(float) %x, <1 x i32> <i32 64>, <1 x i32> zeroinitializer, <1 x i32> zeroinitializer, <1 x i32> zeroinitializer)
  %v = call <64 x float> @llvm.tensor.tovector(token %t)
  %s = call <64 x float> @llvm.tensor.sigmoid(token %t)
  %p = fmul <64 x float> %v, %s
  %u = call token @llvm.tensor.typeinfo(<64 x float> %p, <1 x i32> <i32 64>, <1 x i32> zeroinitializer, <1 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %y, token %u, <1 x i32> zeroinitializer)
  ret void
}

define void @gate(ptr %x, ptr noalias %y) {
  %t = call token @llvm.tensor.load(ptr elementtype(float) %x, <1 x i32> <i32 64>, <1 x i32> zeroinitializer, <1 x i32> zeroinitializer, <1 x i32> zeroinitializer)
  %v = call <64 x float> @llvm.tensor.tovector(token %t)
  %tanh = call <64 x float> @llvm.tensor.tanh(token %t)
  %s = fadd <64 x float> %tanh, splat (float 1.0)
  %h = fmul <64 x float> %v, splat (float 0.5)
  %p = fmul <64 x float> %h, %s
  %r = fptrunc <64 x float> %p to <64 x bfloat>
  %u = call token @llvm.tensor.typeinfo(<64 x bfloat> %r, <1 x i32> <i32 64>, <1 x i32> zeroinitializer, <1 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %y, token %u, <1 x i32> zeroinitializer)
  ret void
}
