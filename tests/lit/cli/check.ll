; RUN: tlx-lower --check --target=avx2 %s -o /dev/null 2>&1 | FileCheck %s --allow-empty
; RUN: tlx-lower -check=1 --target=generic --stop-after=to-2d %s -o %t.ll
; RUN: FileCheck %s --check-prefix=LOWERED < %t.ll
; RUN: not tlx-lower --check=0 %s 2>&1 | FileCheck %s --check-prefix=RANGE

; CHECK-NOT: @known
; CHECK: check.ll:[[@LINE+15]]:1: note: @unknown was not checked: call to @elsewhere
; LOWERED: define void @known
; RANGE: --check

define void @known(ptr %a, ptr %b, ptr %c) {
  %x = call token @llvm.tensor.load(ptr elementtype(i8) %a, <2 x i32> <i32 3, i32 4>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> <i32 0, i32 5>)
  %y = call token @llvm.tensor.load(ptr elementtype(i8) %b, <2 x i32> <i32 4, i32 2>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %p = call <6 x i32> @llvm.tensor.matmul(token %x, token %y)
  %t = call token @llvm.tensor.typeinfo(<6 x i32> %p, <2 x i32> <i32 3, i32 2>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}

declare void @elsewhere()

define void @unknown(ptr %a, ptr %c) {
  %x = call token @llvm.tensor.load(ptr elementtype(i8) %a, <2 x i32> <i32 3, i32 4>, <2 x i32> <i32 1, i32 0>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %x, <2 x i32> zeroinitializer)
  call void @elsewhere()
  ret void
}
