; Elementwise functions of LLVM 20 and later are lowered, too: no instruction is left on the whole vector.
; RUN: tlx-lower %s -o - --target=avx512 --remarks=%t.yaml | FileCheck %s
; RUN: FileCheck %s --check-prefix=REMARK --input-file=%t.yaml

; CHECK-LABEL: {{^}}define void @smaller(
; CHECK: {{^}}  tail call void @[[SMALLER:[.a-z0-9]+]](
; CHECK-LABEL: {{^}}define void @angle(
; CHECK: {{^}}  tail call void @[[ANGLE:[.a-z0-9]+]](
; CHECK: {{^}}define internal void @[[SMALLER]](
; CHECK-NOT: @llvm.minimumnum
; CHECK: or <16 x i32>
; CHECK: fcmp uno <16 x float>
; CHECK: {{^}}define internal void @[[ANGLE]](
; CHECK: call <16 x float> @llvm.atan2.v16f32(

; REMARK: llvm.atan2 of float: avx512 has no vector code; the C library is called

declare token @llvm.tensor.load(ptr, <1 x i32>, <1 x i32>, <1 x i32>, <1 x i32>)
declare <4096 x float> @llvm.tensor.tovector(token)
declare <4096 x float> @llvm.minimumnum.v4096f32(<4096 x float>, <4096 x float>)
declare <4096 x float> @llvm.atan2.v4096f32(<4096 x float>, <4096 x float>)

define void @smaller(ptr noalias %out, ptr %a, ptr %b) {
  %s = call token @llvm.tensor.load(ptr elementtype(float) %a, <1 x i32> <i32 4096>, <1 x i32> zeroinitializer, <1 x i32> zeroinitializer, <1 x i32> zeroinitializer)
  %t = call token @llvm.tensor.load(ptr elementtype(float) %b, <1 x i32> <i32 4096>, <1 x i32> zeroinitializer, <1 x i32> zeroinitializer, <1 x i32> zeroinitializer)
  %x = call <4096 x float> @llvm.tensor.tovector(token %s)
  %y = call <4096 x float> @llvm.tensor.tovector(token %t)
  %z = call <4096 x float> @llvm.minimumnum.v4096f32(<4096 x float> %x, <4096 x float> %y)
  store <4096 x float> %z, ptr %out
  ret void
}

define void @angle(ptr noalias %out, ptr %a, ptr %b) {
  %s = call token @llvm.tensor.load(ptr elementtype(float) %a, <1 x i32> <i32 4096>, <1 x i32> zeroinitializer, <1 x i32> zeroinitializer, <1 x i32> zeroinitializer)
  %t = call token @llvm.tensor.load(ptr elementtype(float) %b, <1 x i32> <i32 4096>, <1 x i32> zeroinitializer, <1 x i32> zeroinitializer, <1 x i32> zeroinitializer)
  %x = call <4096 x float> @llvm.tensor.tovector(token %s)
  %y = call <4096 x float> @llvm.tensor.tovector(token %t)
  %z = call <4096 x float> @llvm.atan2.v4096f32(<4096 x float> %x, <4096 x float> %y)
  store <4096 x float> %z, ptr %out
  ret void
}
