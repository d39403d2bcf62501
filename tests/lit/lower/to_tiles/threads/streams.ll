; --threads=openmp: each part is smaller than the caches, but their sum is not, so results are stored non-temporally as
; on one thread; a fence follows each thread's stores. A copy that fits the caches is stored normally.
;
; RUN: grep -v "^;" %s | tlx-lower - -o - --target=avx512 --threads=openmp | FileCheck %s
; RUN: grep -v "^;" %s | tlx-lower - -o - --target=avx512 | FileCheck %s --check-prefix=ALONE

; CHECK-LABEL: define internal void @tlx.map.1x
; CHECK: store <16 x float> {{.*}}, align 64, !nontemporal
; CHECK: fence
; CHECK: ret void
; CHECK-LABEL: define internal void @tlx.nest.tlx.copy.4096x8192.f32.part(
; CHECK: store <16 x float> {{.*}}, align 64, !nontemporal
; CHECK: fence
; CHECK: ret void
; CHECK-LABEL: define internal void @tlx.nest.tlx.copy.1024x1024.f32.part(
; CHECK-NOT: nontemporal

; ALONE-LABEL: define internal void @tlx.map.1x33554432.f32(
; ALONE: store <16 x float> {{.*}}, align 64, !nontemporal
; ALONE-LABEL: define internal void @tlx.copy.4096x8192.f32(
; ALONE: store <16 x float> {{.*}}, align 64, !nontemporal
; ALONE-LABEL: define internal void @tlx.copy.1024x1024.f32(
; ALONE-NOT: nontemporal

define void @map(ptr noalias %y, ptr noalias %x) {
  %v = call token @llvm.tensor.load(ptr elementtype(float) %x, <2 x i32> <i32 4096, i32 8192>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %r = call <33554432 x float> @llvm.tensor.relu(token %v)
  %t = call token @llvm.tensor.typeinfo(<33554432 x float> %r, <2 x i32> <i32 4096, i32 8192>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %y, token %t, <2 x i32> zeroinitializer)
  ret void
}

define void @copy(ptr noalias %y, ptr noalias %x) {
  %v = call token @llvm.tensor.load(ptr elementtype(float) %x, <2 x i32> <i32 4096, i32 8192>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> <i32 0, i32 8200>)
  call void @llvm.tensor.store(ptr %y, token %v, <2 x i32> zeroinitializer)
  ret void
}

define void @small(ptr noalias %y, ptr noalias %x) {
  %v = call token @llvm.tensor.load(ptr elementtype(float) %x, <2 x i32> <i32 1024, i32 1024>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> <i32 0, i32 8200>)
  call void @llvm.tensor.store(ptr %y, token %v, <2 x i32> zeroinitializer)
  ret void
}
