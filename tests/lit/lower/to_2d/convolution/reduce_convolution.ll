; RUN: tlx-lower %s -o - --target=avx512 --stop-after=to-2d --remarks 2>%t.remarks | FileCheck %s
; RUN: FileCheck --check-prefix=REMARK --input-file=%t.remarks %s
; RUN: tlx-lower %s -o - --target=amx --check | FileCheck --check-prefix=NONE %s

; The maximum of each row of 40 pixels: a block of 48 filters x 40 pixels is reduced to 48 numbers when its sums are
; complete. No tensor of the convolution's size is in memory.

; REMARK: remark: fused convolution, fadd into reduce.max: no intermediate result goes through memory
define void @rows(ptr noalias %x, ptr noalias %w, ptr noalias %bias, ptr noalias %y) {
; CHECK-LABEL: define void @rows(
; CHECK-NOT:   76800 x float
; CHECK:       [[SUM:%.+]] = fadd <1920 x float>
; CHECK:       [[TOKEN:%.+]] = call token @llvm.tensor.typeinfo{{.*}}(<1920 x float> [[SUM]], <2 x i32> <i32 48, i32 40>
; CHECK:       [[MAX:%.+]] = call <48 x float> @llvm.tensor.reduce.max{{.*}}(token [[TOKEN]], <2 x i32> <i32 1, i32 40>
; CHECK:       call token @llvm.tensor.typeinfo{{.*}}(<48 x float> [[MAX]], <2 x i32> <i32 48, i32 1>
; CHECK:       call void @llvm.tensor.store.p0.v2i32(ptr %out.ptr
; CHECK:       ret void
; NONE-NOT:    llvm.tensor
  %a = call token @llvm.tensor.load(ptr elementtype(float) %x, <4 x i32> <i32 1, i32 16, i32 42, i32 42>, <4 x i32> <i32 0, i32 1, i32 2, i32 3>, <4 x i32> zeroinitializer, <4 x i32> zeroinitializer)
  %f = call token @llvm.tensor.load(ptr elementtype(float) %w, <4 x i32> <i32 48, i32 16, i32 3, i32 3>, <4 x i32> <i32 0, i32 1, i32 2, i32 3>, <4 x i32> zeroinitializer, <4 x i32> zeroinitializer)
  %r = call <76800 x float> @llvm.tensor.convolution(token %a, token %f)
  %b = call token @llvm.tensor.load(ptr elementtype(float) %bias, <1 x i32> <i32 48>, <1 x i32> zeroinitializer, <1 x i32> zeroinitializer, <1 x i32> zeroinitializer)
  %biases = call <76800 x float> @llvm.tensor.broadcast(token %b, <4 x i32> <i32 1, i32 48, i32 40, i32 40>, <1 x i32> <i32 1>)
  %s = fadd <76800 x float> %r, %biases
  %t = call token @llvm.tensor.typeinfo(<76800 x float> %s, <4 x i32> <i32 1, i32 48, i32 40, i32 40>, <4 x i32> <i32 0, i32 1, i32 2, i32 3>, <4 x i32> zeroinitializer)
  %m = call <1920 x float> @llvm.tensor.reduce.max(token %t, <4 x i32> <i32 1, i32 1, i32 1, i32 40>, <4 x i32> <i32 1, i32 1, i32 1, i32 1>)
  store <1920 x float> %m, ptr %y
  ret void
}

; The sum of each channel, scaled, of a 1x1 convolution: rows and columns are one dimension, which a block reduces.

; REMARK: remark: fused convolution into reduce.add: no intermediate result goes through memory
define void @sums(ptr noalias %x, ptr noalias %w, ptr noalias %y) {
; CHECK-LABEL: define void @sums(
; CHECK:       call <48 x float> @llvm.tensor.reduce.add{{.*}}, <2 x i32> <i32 1, i32 1600>, <2 x i32> <i32 1, i32 1>)
; CHECK:       ret void
  %a = call token @llvm.tensor.load(ptr elementtype(float) %x, <4 x i32> <i32 1, i32 16, i32 40, i32 40>, <4 x i32> <i32 0, i32 1, i32 2, i32 3>, <4 x i32> zeroinitializer, <4 x i32> zeroinitializer)
  %f = call token @llvm.tensor.load(ptr elementtype(float) %w, <4 x i32> <i32 48, i32 16, i32 1, i32 1>, <4 x i32> <i32 0, i32 1, i32 2, i32 3>, <4 x i32> zeroinitializer, <4 x i32> zeroinitializer)
  %r = call <76800 x float> @llvm.tensor.convolution(token %a, token %f)
  %t = call token @llvm.tensor.typeinfo(<76800 x float> %r, <4 x i32> <i32 1, i32 48, i32 40, i32 40>, <4 x i32> <i32 0, i32 1, i32 2, i32 3>, <4 x i32> zeroinitializer)
  %s = call <48 x float> @llvm.tensor.reduce.add(token %t, <4 x i32> <i32 1, i32 1, i32 40, i32 40>, <4 x i32> <i32 1, i32 1, i32 1, i32 1>)
  %m = fmul <48 x float> %s, splat (float 6.250000e-01)
  store <48 x float> %m, ptr %y
  ret void
}

; With a 3x3 kernel, rows and columns are two dimensions: the sums of rows of pixels are reduced in a second step.

; REMARK: remark: temporary of 7.5 KiB between the product and reduce.add, because a block reduces only a part of it
; REMARK: remark: fused convolution into reduce.add: no intermediate result goes through memory
define void @planes(ptr noalias %x, ptr noalias %w, ptr noalias %y) {
; CHECK-LABEL: define void @planes(
; CHECK:       %partial.buf = alloca [1920 x float]
; CHECK:       call <48 x float> @llvm.tensor.reduce.add{{.*}}, <2 x i32> <i32 1, i32 40>, <2 x i32> <i32 1, i32 1>)
; CHECK:       @llvm.tensor.reduce.add{{.*}}, <2 x i32> <i32 1, i32 40>, <2 x i32> <i32 1, i32 1>)
; CHECK:       ret void
  %a = call token @llvm.tensor.load(ptr elementtype(float) %x, <4 x i32> <i32 1, i32 64, i32 42, i32 42>, <4 x i32> <i32 0, i32 1, i32 2, i32 3>, <4 x i32> zeroinitializer, <4 x i32> zeroinitializer)
  %f = call token @llvm.tensor.load(ptr elementtype(float) %w, <4 x i32> <i32 48, i32 64, i32 3, i32 3>, <4 x i32> <i32 0, i32 1, i32 2, i32 3>, <4 x i32> zeroinitializer, <4 x i32> zeroinitializer)
  %r = call <76800 x float> @llvm.tensor.convolution(token %a, token %f)
  %t = call token @llvm.tensor.typeinfo(<76800 x float> %r, <4 x i32> <i32 1, i32 48, i32 40, i32 40>, <4 x i32> <i32 0, i32 1, i32 2, i32 3>, <4 x i32> zeroinitializer)
  %s = call <48 x float> @llvm.tensor.reduce.add(token %t, <4 x i32> <i32 1, i32 1, i32 40, i32 40>, <4 x i32> <i32 1, i32 1, i32 1, i32 1>)
  store <48 x float> %s, ptr %y
  ret void
}

; Rows of 6 pixels are too short for blocks.

; REMARK: remark: temporary of 6.8 KiB between the product and reduce.add, because that takes less time
define void @short(ptr noalias %x, ptr noalias %w, ptr noalias %y) {
  %a = call token @llvm.tensor.load(ptr elementtype(float) %x, <4 x i32> <i32 1, i32 64, i32 8, i32 8>, <4 x i32> <i32 0, i32 1, i32 2, i32 3>, <4 x i32> zeroinitializer, <4 x i32> zeroinitializer)
  %f = call token @llvm.tensor.load(ptr elementtype(float) %w, <4 x i32> <i32 48, i32 64, i32 3, i32 3>, <4 x i32> <i32 0, i32 1, i32 2, i32 3>, <4 x i32> zeroinitializer, <4 x i32> zeroinitializer)
  %r = call <1728 x float> @llvm.tensor.convolution(token %a, token %f)
  %t = call token @llvm.tensor.typeinfo(<1728 x float> %r, <4 x i32> <i32 1, i32 48, i32 6, i32 6>, <4 x i32> <i32 0, i32 1, i32 2, i32 3>, <4 x i32> zeroinitializer)
  %s = call <288 x float> @llvm.tensor.reduce.add(token %t, <4 x i32> <i32 1, i32 1, i32 1, i32 6>, <4 x i32> <i32 1, i32 1, i32 1, i32 1>)
  store <288 x float> %s, ptr %y
  ret void
}
