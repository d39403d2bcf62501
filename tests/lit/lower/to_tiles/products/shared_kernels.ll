; Products that differ in the number of rows only share a kernel, which takes the number of its tiles; one that differs
; in the distance of rows, or is called in a loop, has its own.
;
; RUN: tlx-lower %s --target=avx512 --stop-after=to-tiles | FileCheck %s
; RUN: tlx-lower %s --target=avx512 --check -o /dev/null

; CHECK-LABEL: define void @few(
; CHECK: call void @[[SHARED:tlx[a-z0-9.]+]](ptr %c, ptr %a, ptr %b, i64 8)
define void @few(ptr noalias %c, ptr noalias %a, ptr noalias %b) {
  %x = call token @llvm.tensor.load(ptr elementtype(float) %a, <2 x i32> <i32 48, i32 96>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %y = call token @llvm.tensor.load(ptr elementtype(float) %b, <2 x i32> <i32 96, i32 64>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %p = call <3072 x float> @llvm.tensor.matmul(token %x, token %y)
  %t = call token @llvm.tensor.typeinfo(<3072 x float> %p, <2 x i32> <i32 48, i32 64>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}

; CHECK-LABEL: define void @many(
; CHECK: call void @[[SHARED]](ptr %c, ptr %a, ptr %b, i64 16)
define void @many(ptr noalias %c, ptr noalias %a, ptr noalias %b) {
  %x = call token @llvm.tensor.load(ptr elementtype(float) %a, <2 x i32> <i32 96, i32 96>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %y = call token @llvm.tensor.load(ptr elementtype(float) %b, <2 x i32> <i32 96, i32 64>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %p = call <6144 x float> @llvm.tensor.matmul(token %x, token %y)
  %t = call token @llvm.tensor.typeinfo(<6144 x float> %p, <2 x i32> <i32 96, i32 64>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}

; CHECK-LABEL: define void @apart(
; CHECK: call void @[[APART:tlx[a-z0-9.]+]](ptr %c, ptr %a, ptr %b)
define void @apart(ptr noalias %c, ptr noalias %a, ptr noalias %b) {
  %x = call token @llvm.tensor.load(ptr elementtype(float) %a, <2 x i32> <i32 48, i32 96>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> <i32 0, i32 100>)
  %y = call token @llvm.tensor.load(ptr elementtype(float) %b, <2 x i32> <i32 96, i32 64>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %p = call <3072 x float> @llvm.tensor.matmul(token %x, token %y)
  %t = call token @llvm.tensor.typeinfo(<3072 x float> %p, <2 x i32> <i32 48, i32 64>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}

; CHECK-LABEL: define void @nest(
; CHECK: call void @{{tlx.nest.+}}(ptr
define void @nest(ptr noalias %c, ptr noalias %a, ptr noalias %b) {
  %x = call token @llvm.tensor.load(ptr elementtype(float) %a, <3 x i32> <i32 5, i32 144, i32 96>, <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> zeroinitializer, <3 x i32> zeroinitializer)
  %y = call token @llvm.tensor.load(ptr elementtype(float) %b, <3 x i32> <i32 5, i32 96, i32 64>, <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> zeroinitializer, <3 x i32> zeroinitializer)
  %p = call <46080 x float> @llvm.tensor.matmul(token %x, token %y)
  %t = call token @llvm.tensor.typeinfo(<46080 x float> %p, <3 x i32> <i32 5, i32 144, i32 64>, <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <3 x i32> zeroinitializer)
  ret void
}

; CHECK: define internal void @[[SHARED]](ptr noalias %c, ptr %a, ptr %b, i64 %n)
; CHECK: icmp slt i64 %{{[a-z.0-9]+}}, %n
; CHECK: define internal void @[[APART]](ptr noalias %c, ptr %a, ptr %b)
; CHECK: define internal void @{{tlx.+}}(ptr noalias %c, ptr %a, ptr %b)
; CHECK: define internal void @{{tlx.nest.+}}(ptr
; CHECK-NOT: {{^}}define internal
