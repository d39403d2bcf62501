; Kernels take pointers in the default address space; other pointers are cast in front of the call.
;
; RUN: grep -v '^;' %s | tlx-lower - -o - --target=avx2 | FileCheck %s
; RUN: grep -v '^;' %s | tlx-lower - -o - --target=avx2 --emit=obj > /dev/null

; CHECK-LABEL: define void @f(
; CHECK-DAG: %[[C:.*]] = addrspacecast ptr addrspace(1) %c to ptr
; CHECK-DAG: %[[Y:.*]] = addrspacecast ptr addrspace(1) %y to ptr
; CHECK: call void @tlx.matmul.8x8x8.f32.f32.f32(ptr %[[C]], ptr %x, ptr %[[Y]])
define void @f(ptr noalias %x, ptr addrspace(1) noalias %y, ptr addrspace(1) noalias %c) {
  %a = call token @llvm.tensor.load(ptr elementtype(float) %x, <2 x i32> <i32 8, i32 8>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %b = call token @llvm.tensor.load(ptr addrspace(1) elementtype(float) %y, <2 x i32> <i32 8, i32 8>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %p = call <64 x float> @llvm.tensor.matmul(token %a, token %b)
  %t = call token @llvm.tensor.typeinfo(<64 x float> %p, <2 x i32> <i32 8, i32 8>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr addrspace(1) %c, token %t, <2 x i32> zeroinitializer)
  ret void
}
