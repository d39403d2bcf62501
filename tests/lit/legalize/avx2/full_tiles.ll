; Tiles of 4x24 and 3x32 take all 16 registers: 12 sums, the operand that is held, and one register of the other one.
;
; Labels keep LLVM from loading an operand before the products of the one before it, which would take a 17th register.
; REQUIRES: clang-19, llvm-mca-19, host-x86_64, llvm-filecheck
; RUN: tlx-lower %s -o %t.ll --target=avx2 --tile=4x24
; RUN: clang-19 -O2 -fPIC -Wno-override-module -S %t.ll -o %t.s
; RUN: %assembly %t.s --mcpu=haswell --bound=1.03
; RUN: %assembly %t.s | FileCheck %s --check-prefixes=CHECK,HIGH --implicit-check-not="stack {{[1-9]}}"
; RUN: tlx-lower %s -o %t.ll --target=avx2 --tile=3x32
; RUN: clang-19 -O2 -fPIC -Wno-override-module -S %t.ll -o %t.s
; RUN: %assembly %t.s --mcpu=haswell --bound=1.03
; RUN: %assembly %t.s | FileCheck %s --check-prefixes=CHECK,WIDE --implicit-check-not="stack {{[1-9]}}"
;
; In tiles with a register to spare, LLVM orders loads and products.
; RUN: grep -v '^;' %s | tlx-lower - --target=avx2 --tile=6x16 | FileCheck %s --check-prefix=SPARE --implicit-check-not=codeview
;
; SPARE: call <8 x float> @llvm.fma.v8f32
; CHECK: tlx.matmul.96x96x96.f32.f32.f32: calls nothing,
; HIGH: vbroadcastss ymm 16
; HIGH-NEXT: vmovups ymm 12
; WIDE: vbroadcastss ymm 12
; WIDE-NEXT: vmovups ymm 16
; CHECK-NEXT: vfmadd231ps ymm 48
; CHECK-NEXT: stack 0

define void @f(ptr noalias %c, ptr %a, ptr %b) {
  %lhs = call token @llvm.tensor.load(ptr elementtype(float) %a, <2 x i32> <i32 96, i32 96>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %rhs = call token @llvm.tensor.load(ptr elementtype(float) %b, <2 x i32> <i32 96, i32 96>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <9216 x float> @llvm.tensor.matmul(token %lhs, token %rhs)
  %t = call token @llvm.tensor.typeinfo(<9216 x float> %m, <2 x i32> <i32 96, i32 96>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}
