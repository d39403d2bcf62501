; A function without tensor operations may copy large tensors, as clang -O0 does in callers: no large vector is left.
; RUN: grep -v '^;' %s | tlx-lower - --target=generic --stop-after=to-2d -o - | FileCheck %s

define void @callee(ptr byval(<65536 x i32>) %x, ptr noalias %out) {
  %t = call token @llvm.tensor.typeinfo(ptr byval(<65536 x i32>) %x, <2 x i32> <i32 256, i32 256>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  %m = call <65536 x i32> @llvm.tensor.matmul(token %t, token %t)
  store <65536 x i32> %m, ptr %out
  ret void
}

; CHECK-LABEL: define void @caller(
; CHECK-NEXT:    %copy = alloca <65536 x i32>, align 64
; CHECK-NEXT:    call void @llvm.mem{{cpy|move}}.p0.p0.i64(ptr %copy, ptr %from, i64 262144, i1 false)
; CHECK-NEXT:    call void @callee(ptr byval(<65536 x i32>) %copy, ptr %out)
; CHECK-NEXT:    ret void
define void @caller(ptr %from, ptr %out) {
  %copy = alloca <65536 x i32>, align 64
  %value = load <65536 x i32>, ptr %from, align 4
  store <65536 x i32> %value, ptr %copy, align 64
  call void @callee(ptr byval(<65536 x i32>) %copy, ptr %out)
  ret void
}
