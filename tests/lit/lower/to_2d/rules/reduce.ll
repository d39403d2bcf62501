; Reductions of whole dimensions: trees that reduce the rows or the columns of matrices.
; RUN: grep -v '^;' %s | tlx-lower - --stop-after=to-2d --target=generic -o - | FileCheck %s

; Sums of rows.
; CHECK-LABEL: define void @rows(ptr %x, ptr noalias %c) {
; CHECK-NEXT:    %rows = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %x, <2 x i32> <i32 3, i32 20>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 20>)
; CHECK-NEXT:    %tovector = call <60 x float> @llvm.tensor.tovector.v60f32(token %rows)
; CHECK-NEXT:    %matrix = call token @llvm.tensor.typeinfo.v60f32.v2i32(<60 x float> %tovector, <2 x i32> <i32 3, i32 20>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT:    %add = call <3 x float> @llvm.tensor.reduce.add.v3f32.v2i32(token %matrix, <2 x i32> <i32 1, i32 20>, <2 x i32> <i32 1, i32 1>)
; CHECK-NEXT:    %block = call token @llvm.tensor.typeinfo.v3f32.v2i32(<3 x float> %add, <2 x i32> <i32 3, i32 1>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT:    call void @llvm.tensor.store.p0.v2i32(ptr %c, token %block, <2 x i32> <i32 0, i32 1>)
; CHECK-NEXT:    ret void
; CHECK-NEXT:  }
define void @rows(ptr %x, ptr noalias %c) {
  %t = call token @llvm.tensor.load(ptr elementtype(float) %x, <2 x i32> <i32 3, i32 20>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %v = call <3 x float> @llvm.tensor.reduce.add(token %t, <2 x i32> <i32 1, i32 20>, <2 x i32> <i32 1, i32 1>)
  store <3 x float> %v, ptr %c
  ret void
}

; The maximum of each column.
; CHECK-LABEL: define void @columns(ptr %x, ptr noalias %c) {
; CHECK-NEXT:    %rows = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(i8) %x, <2 x i32> <i32 20, i32 3>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 3>)
; CHECK-NEXT:    %tovector = call <60 x i8> @llvm.tensor.tovector.v60i8(token %rows)
; CHECK-NEXT:    %matrix = call token @llvm.tensor.typeinfo.v60i8.v2i32(<60 x i8> %tovector, <2 x i32> <i32 20, i32 3>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT:    %max = call <3 x i8> @llvm.tensor.reduce.max.v3i8.v2i32(token %matrix, <2 x i32> <i32 20, i32 1>, <2 x i32> <i32 1, i32 1>)
; CHECK-NEXT:    %block = call token @llvm.tensor.typeinfo.v3i8.v2i32(<3 x i8> %max, <2 x i32> <i32 1, i32 3>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT:    call void @llvm.tensor.store.p0.v2i32(ptr %c, token %block, <2 x i32> <i32 0, i32 3>)
; CHECK-NEXT:    ret void
; CHECK-NEXT:  }
define void @columns(ptr %x, ptr noalias %c) {
  %t = call token @llvm.tensor.load(ptr elementtype(i8) %x, <2 x i32> <i32 20, i32 3>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %v = call <3 x i8> @llvm.tensor.reduce.max(token %t, <2 x i32> <i32 20, i32 1>, <2 x i32> <i32 1, i32 1>)
  store <3 x i8> %v, ptr %c
  ret void
}

; A dense tensor is summed as one row; narrow floats are summed as float and rounded once.
; CHECK-LABEL: define void @all(ptr %x, ptr noalias %c) {
; CHECK-NEXT:    %rows = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(half) %x, <2 x i32> <i32 1, i32 24>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 24>)
; CHECK-NEXT:    %tovector = call <24 x half> @llvm.tensor.tovector.v24f16(token %rows)
; CHECK-NEXT:    %matrix = call token @llvm.tensor.typeinfo.v24f16.v2i32(<24 x half> %tovector, <2 x i32> <i32 1, i32 24>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT:    %add = call <1 x half> @llvm.tensor.reduce.add.v1f16.v2i32(token %matrix, <2 x i32> <i32 1, i32 24>, <2 x i32> <i32 1, i32 1>)
; CHECK-NEXT:    %block = call token @llvm.tensor.typeinfo.v1f16.v2i32(<1 x half> %add, <2 x i32> <i32 1, i32 1>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT:    call void @llvm.tensor.store.p0.v2i32(ptr %c, token %block, <2 x i32> <i32 0, i32 1>)
; CHECK-NEXT:    ret void
; CHECK-NEXT:  }
define void @all(ptr %x, ptr noalias %c) {
  %t = call token @llvm.tensor.load(ptr elementtype(half) %x, <3 x i32> <i32 2, i32 3, i32 4>, <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> zeroinitializer, <3 x i32> zeroinitializer)
  %v = call <1 x half> @llvm.tensor.reduce.add(token %t, <3 x i32> <i32 2, i32 3, i32 4>, <3 x i32> <i32 1, i32 1, i32 1>)
  store <1 x half> %v, ptr %c
  ret void
}
