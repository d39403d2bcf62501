; Joining tensors: a copy of each into its part of the result.
; RUN: grep -v '^;' %s | tlx-lower - --stop-after=to-2d --target=generic -o - | FileCheck %s

; Rows: both parts are dense.
; CHECK-LABEL: define void @rows(ptr %a, ptr %b, ptr noalias %c) {
; CHECK-NEXT:    call void @llvm.memcpy.p0.p0.i64(ptr %c, ptr %a, i64 48, i1 false)
; CHECK-NEXT:    %part = getelementptr inbounds float, ptr %c, i64 12
; CHECK-NEXT:    call void @llvm.memcpy.p0.p0.i64(ptr %part, ptr %b, i64 32, i1 false)
; CHECK-NEXT:    ret void
; CHECK-NEXT:  }
define void @rows(ptr %a, ptr %b, ptr noalias %c) {
  %x = call token @llvm.tensor.load(ptr elementtype(float) %a, <2 x i32> <i32 3, i32 4>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %y = call token @llvm.tensor.load(ptr elementtype(float) %b, <2 x i32> <i32 2, i32 4>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %v = call <20 x float> @llvm.tensor.concat(token %x, token %y, i32 0)
  store <20 x float> %v, ptr %c
  ret void
}

; Columns, one operand column-major, the result stored with a pitch.
; CHECK-LABEL: define void @columns(ptr %a, ptr %b, ptr noalias %c) {
; CHECK-NEXT:    %rows = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(i16) %a, <2 x i32> <i32 3, i32 2>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 2>)
; CHECK-NEXT:    call void @llvm.tensor.store.p0.v2i32(ptr %c, token %rows, <2 x i32> <i32 0, i32 10>)
; CHECK-NEXT:    %part = getelementptr inbounds i16, ptr %c, i64 2
; CHECK-NEXT:    %rows.1 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(i16) %b, <2 x i32> <i32 6, i32 3>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 3>)
; CHECK-NEXT:    %transpose = call <18 x i16> @llvm.tensor.transpose.v18i16.v2i32(token %rows.1, <2 x i32> <i32 1, i32 0>)
; CHECK-NEXT:    %columns = call token @llvm.tensor.typeinfo.v18i16.v2i32(<18 x i16> %transpose, <2 x i32> <i32 3, i32 6>, <2 x i32> <i32 1, i32 0>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT:    call void @llvm.tensor.store.p0.v2i32(ptr %part, token %columns, <2 x i32> <i32 0, i32 10>)
; CHECK-NEXT:    ret void
; CHECK-NEXT:  }
define void @columns(ptr %a, ptr %b, ptr noalias %c) {
  %x = call token @llvm.tensor.load(ptr elementtype(i16) %a, <2 x i32> <i32 3, i32 2>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %y = call token @llvm.tensor.load(ptr elementtype(i16) %b, <2 x i32> <i32 6, i32 3>, <2 x i32> <i32 1, i32 0>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %v = call <24 x i16> @llvm.tensor.concat(token %x, token %y, i32 1)
  %r = call token @llvm.tensor.typeinfo(<24 x i16> %v, <2 x i32> <i32 3, i32 8>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %r, <2 x i32> <i32 0, i32 10>)
  ret void
}
