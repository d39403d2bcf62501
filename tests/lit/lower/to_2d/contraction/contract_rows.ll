; A large right operand that has to be copied is multiplied with all rows of the left one in one product: products of one
; row each would read it from L2 every time.
;
; RUN: grep -v '^;' %s | tlx-lower - --target=avx2 --stop-after=to-2d -o - | FileCheck %s
; RUN: tlx-lower %s --target=avx2 --remarks -o %t 2>&1 | FileCheck %s --check-prefix=REMARK

; CHECK-NOT: batch.loop
; CHECK: call <1048576 x float> @llvm.tensor.matmul
; REMARK: remark: matmul 1024x1024x1024 bfloat -> float
define void @f(ptr noalias %c, ptr noalias %a, ptr noalias %b) {
  %x = call token @llvm.tensor.load(ptr elementtype(bfloat) %a, <3 x i32> <i32 1024, i32 512, i32 2>, <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> zeroinitializer, <3 x i32> zeroinitializer)
  %y = call token @llvm.tensor.load(ptr elementtype(bfloat) %b, <3 x i32> <i32 512, i32 1024, i32 2>, <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> zeroinitializer, <3 x i32> zeroinitializer)
  %m = call <1048576 x float> @llvm.tensor.contract(token %x, token %y, <2 x i32> <i32 1, i32 2>, <2 x i32> <i32 0, i32 2>)
  %t = call token @llvm.tensor.typeinfo(<1048576 x float> %m, <2 x i32> <i32 1024, i32 1024>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}
