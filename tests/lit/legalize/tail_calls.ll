; A function that ends with the call to a kernel jumps to it. One with its own stack memory, or with byval parameters,
; must call it, since the kernel may receive that memory. Calls elsewhere in a function are unchanged.
;
; RUN: grep -v '^;' %s | tlx-lower - -o %t.ll --target=avx512
; RUN: FileCheck %s < %t.ll

; CHECK-LABEL: define void @ends(
; CHECK-NEXT: tail call void @tlx.map.1x64.f32({{.*}})
; CHECK-NEXT: ret void
; CHECK-LABEL: define void @goes_on(
; CHECK-NEXT: {{^ *}}call void @tlx.map.1x64.f32(
; CHECK-NEXT: store i32 1, ptr %done
; CHECK-LABEL: define void @by_value(
; CHECK-NEXT: {{^ *}}call void @tlx.map.1x64.f32(
; CHECK-LABEL: define void @on_the_stack(
; CHECK-NEXT: {{^ *}}call void @tlx.map.1x64.f32(
; CHECK-LABEL: define void @own(
; CHECK: {{^ *}}call void @tlx.map.1x64.f32(

define void @ends(ptr noalias %y, ptr %x) {
  %tx = call token @llvm.tensor.load(ptr elementtype(float) %x, <1 x i32> <i32 64>, <1 x i32> zeroinitializer, <1 x i32> zeroinitializer, <1 x i32> zeroinitializer)
  %r = call <64 x float> @llvm.tensor.relu(token %tx)
  %t = call token @llvm.tensor.typeinfo(<64 x float> %r, <1 x i32> <i32 64>, <1 x i32> zeroinitializer, <1 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %y, token %t, <1 x i32> zeroinitializer)
  ret void
}

define void @goes_on(ptr noalias %y, ptr %x, ptr %done) {
  %tx = call token @llvm.tensor.load(ptr elementtype(float) %x, <1 x i32> <i32 64>, <1 x i32> zeroinitializer, <1 x i32> zeroinitializer, <1 x i32> zeroinitializer)
  %r = call <64 x float> @llvm.tensor.relu(token %tx)
  %t = call token @llvm.tensor.typeinfo(<64 x float> %r, <1 x i32> <i32 64>, <1 x i32> zeroinitializer, <1 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %y, token %t, <1 x i32> zeroinitializer)
  store i32 1, ptr %done
  ret void
}

define void @by_value(ptr noalias %y, ptr byval([64 x float]) %x) {
  %tx = call token @llvm.tensor.load(ptr elementtype(float) %x, <1 x i32> <i32 64>, <1 x i32> zeroinitializer, <1 x i32> zeroinitializer, <1 x i32> zeroinitializer)
  %r = call <64 x float> @llvm.tensor.relu(token %tx)
  %t = call token @llvm.tensor.typeinfo(<64 x float> %r, <1 x i32> <i32 64>, <1 x i32> zeroinitializer, <1 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %y, token %t, <1 x i32> zeroinitializer)
  ret void
}

define void @on_the_stack(ptr noalias %y, ptr inalloca([64 x float]) %x) {
  %tx = call token @llvm.tensor.load(ptr elementtype(float) %x, <1 x i32> <i32 64>, <1 x i32> zeroinitializer, <1 x i32> zeroinitializer, <1 x i32> zeroinitializer)
  %r = call <64 x float> @llvm.tensor.relu(token %tx)
  %t = call token @llvm.tensor.typeinfo(<64 x float> %r, <1 x i32> <i32 64>, <1 x i32> zeroinitializer, <1 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %y, token %t, <1 x i32> zeroinitializer)
  ret void
}

define void @own(ptr noalias %y) {
  %x = alloca [64 x float]
  call void @fill(ptr %x)
  %tx = call token @llvm.tensor.load(ptr elementtype(float) %x, <1 x i32> <i32 64>, <1 x i32> zeroinitializer, <1 x i32> zeroinitializer, <1 x i32> zeroinitializer)
  %r = call <64 x float> @llvm.tensor.relu(token %tx)
  %t = call token @llvm.tensor.typeinfo(<64 x float> %r, <1 x i32> <i32 64>, <1 x i32> zeroinitializer, <1 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %y, token %t, <1 x i32> zeroinitializer)
  ret void
}

declare void @fill(ptr)
