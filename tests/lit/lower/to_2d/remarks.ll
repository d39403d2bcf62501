; A remark reports every copy that could not be avoided, with the reason.
; RUN: tlx-lower %s --stop-after=to-2d --target=generic -o %t --remarks=%t.remarks
; RUN: FileCheck %s --input-file=%t.remarks

; CHECK: remarks.ll:[[#@LINE+11]]:3: remark: copy of 36 bytes, because 'store float 1.0, ptr %c' may change %a [to-2d]
; CHECK: remarks.ll:[[#@LINE+9]]:3: remark: %c may alias %a: checked at run time; a temporary of 36 bytes is used if they overlap [to-2d]
; CHECK-NEXT:   store <9 x float> %m, ptr %c
; CHECK-NEXT:   ^
; CHECK: remarks.ll:[[#@LINE+12]]:3: remark: copied twice, because %c may alias %a [to-2d]
; CHECK: remarks.ll:[[#@LINE+19]]:3: remark: fused fadd, fmul into fsub: no intermediate result goes through memory [to-2d]
; CHECK: remarks.ll:[[#@LINE+20]]:3: remark: temporary of 36 bytes for fadd, because its result has uses other than one store [to-2d]
define void @f(ptr %a, ptr %c) {
  %x = call token @llvm.tensor.load(ptr elementtype(float) %a, <2 x i32> <i32 3, i32 3>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <9 x float> @llvm.tensor.matmul(token %x, token %x)
  store <9 x float> %m, ptr %c
  %y = call token @llvm.tensor.load(ptr elementtype(float) %a, <2 x i32> <i32 3, i32 3>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  store float 1.0, ptr %c
  %n = call <9 x float> @llvm.tensor.matmul(token %y, token %y)
  store <9 x float> %n, ptr %c
  %z = call token @llvm.tensor.load(ptr elementtype(float) %a, <2 x i32> <i32 3, i32 3>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %z, <2 x i32> zeroinitializer)
  ret void
}
define void @g(<9 x float> %v, ptr noalias %p, ptr noalias %q) {
  %t = call token @llvm.tensor.load(ptr elementtype(float) %p, <1 x i32> <i32 9>, <1 x i32> zeroinitializer, <1 x i32> zeroinitializer, <1 x i32> zeroinitializer)
  %x = call <9 x float> @llvm.tensor.tovector(token %t)
  %a = fadd <9 x float> %x, %v
  %b = fmul <9 x float> %a, %v
  %c = fsub <9 x float> %b, %a
  store <9 x float> %c, ptr %q
  %d = fadd <9 x float> %x, %x
  %e = extractelement <9 x float> %d, i32 0
  store float %e, ptr %p
  ret void
}
; CHECK: remark: fused fadd into llvm.maxnum: no intermediate result goes through memory [to-2d]
define void @h(ptr noalias %p, ptr noalias %q) {
  %t = call token @llvm.tensor.load(ptr elementtype(float) %p, <1 x i32> <i32 9>, <1 x i32> zeroinitializer, <1 x i32> zeroinitializer, <1 x i32> zeroinitializer)
  %x = call <9 x float> @llvm.tensor.tovector(token %t)
  %a = fadd <9 x float> %x, %x
  %b = call <9 x float> @llvm.maxnum.v9f32(<9 x float> %a, <9 x float> %x)
  store <9 x float> %b, ptr %q
  ret void
}
declare <9 x float> @llvm.maxnum.v9f32(<9 x float>, <9 x float>)
