; Images between convolutions have channels last in memory where their products then take less time: tiles of a matrix
; unit read channels next to each other. Rows of tiles are pixels of a column, 3584 = 56 * 64 or 3456 = 54 * 64 elements
; apart. The argument and the result have channels first.
; RUN: grep -v '^;' %s | tlx-lower - --stop-after=to-2d --target=amx --remarks -o %t 2>&1 | FileCheck %s --check-prefix=REMARK
; RUN: FileCheck %s --input-file=%t

; REMARK-COUNT-2: relu has channels last in memory: convolutions then take less time

; CHECK-LABEL: define void @network(
; CHECK:         call void @llvm.tensor.store.p0.v2i32(ptr %out.ptr, token %product, <2 x i32> <i32 0, i32 3584>)
; CHECK:         call void @llvm.tensor.store.p0.v2i32(ptr %out.ptr.1, token %product.1, <2 x i32> <i32 0, i32 3456>)
define void @network(ptr noalias %x, ptr noalias %w, ptr noalias %y) {
  %t0 = call token @llvm.tensor.load(ptr elementtype(bfloat) %x, <4 x i32> <i32 1, i32 64, i32 58, i32 58>, <4 x i32> <i32 0, i32 1, i32 2, i32 3>, <4 x i32> zeroinitializer, <4 x i32> zeroinitializer)
  %f = call token @llvm.tensor.load(ptr elementtype(bfloat) %w, <4 x i32> <i32 64, i32 64, i32 3, i32 3>, <4 x i32> <i32 0, i32 1, i32 2, i32 3>, <4 x i32> zeroinitializer, <4 x i32> zeroinitializer)
  %y0 = call <200704 x bfloat> @llvm.tensor.convolution(token %t0, token %f, <2 x i32> <i32 1, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %c0 = call token @llvm.tensor.typeinfo(<200704 x bfloat> %y0, <4 x i32> <i32 1, i32 64, i32 56, i32 56>, <4 x i32> <i32 0, i32 1, i32 2, i32 3>, <4 x i32> zeroinitializer)
  %r0 = call <200704 x bfloat> @llvm.tensor.relu(token %c0)
  %t1 = call token @llvm.tensor.typeinfo(<200704 x bfloat> %r0, <4 x i32> <i32 1, i32 64, i32 56, i32 56>, <4 x i32> <i32 0, i32 1, i32 2, i32 3>, <4 x i32> zeroinitializer)
  %y1 = call <186624 x bfloat> @llvm.tensor.convolution(token %t1, token %f, <2 x i32> <i32 1, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %c1 = call token @llvm.tensor.typeinfo(<186624 x bfloat> %y1, <4 x i32> <i32 1, i32 64, i32 54, i32 54>, <4 x i32> <i32 0, i32 1, i32 2, i32 3>, <4 x i32> zeroinitializer)
  %r1 = call <186624 x bfloat> @llvm.tensor.relu(token %c1)
  %t2 = call token @llvm.tensor.typeinfo(<186624 x bfloat> %r1, <4 x i32> <i32 1, i32 64, i32 54, i32 54>, <4 x i32> <i32 0, i32 1, i32 2, i32 3>, <4 x i32> zeroinitializer)
  %y2 = call <173056 x bfloat> @llvm.tensor.convolution(token %t2, token %f, <2 x i32> <i32 1, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %c2 = call token @llvm.tensor.typeinfo(<173056 x bfloat> %y2, <4 x i32> <i32 1, i32 64, i32 52, i32 52>, <4 x i32> <i32 0, i32 1, i32 2, i32 3>, <4 x i32> zeroinitializer)
  %r2 = call <173056 x bfloat> @llvm.tensor.relu(token %c2)
  %t3 = call token @llvm.tensor.typeinfo(<173056 x bfloat> %r2, <4 x i32> <i32 1, i32 64, i32 52, i32 52>, <4 x i32> <i32 0, i32 1, i32 2, i32 3>, <4 x i32> zeroinitializer)
  %y3 = call <160000 x bfloat> @llvm.tensor.convolution(token %t3, token %f, <2 x i32> <i32 1, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %c3 = call token @llvm.tensor.typeinfo(<160000 x bfloat> %y3, <4 x i32> <i32 1, i32 64, i32 50, i32 50>, <4 x i32> <i32 0, i32 1, i32 2, i32 3>, <4 x i32> zeroinitializer)
  %r3 = call <160000 x bfloat> @llvm.tensor.relu(token %c3)
  %t4 = call token @llvm.tensor.typeinfo(<160000 x bfloat> %r3, <4 x i32> <i32 1, i32 64, i32 50, i32 50>, <4 x i32> <i32 0, i32 1, i32 2, i32 3>, <4 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %y, token %t4, <4 x i32> zeroinitializer)
  ret void
}
