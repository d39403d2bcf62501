; Every copy that could not be avoided is a remark, with the reason.
; RUN: tlx-lower %s --stop-after=to-2d --target=generic -o %t --remarks=%t.remarks
; RUN: FileCheck %s --input-file=%t.remarks

; CHECK: remarks.ll:[[#@LINE+7]]:3: remark: temporary of 36 bytes for matmul, because %c may alias %a [to-2d]
; CHECK-NEXT:   %m = call <9 x float> @llvm.tensor.matmul(token %x, token %x)
; CHECK-NEXT:   ^
; CHECK: remarks.ll:[[#@LINE+6]]:3: remark: copy of 36 bytes, because 'store float 1.0, ptr %c' may change %a [to-2d]
; CHECK: remarks.ll:[[#@LINE+10]]:3: remark: copied twice, because %c may alias %a [to-2d]
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
