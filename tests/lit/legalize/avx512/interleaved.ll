; A right operand with interleaved rows is what vdpbf16ps reads: no copy, no packing, one load per register of pairs.
;
; REQUIRES: clang-19, host-x86_64
; RUN: tlx-lower %s -o %t.ll --target=avx512 --remarks 2> %t.remarks
; RUN: FileCheck %s --check-prefix=REMARK --implicit-check-not="copy of" --implicit-check-not=temporary < %t.remarks
; RUN: clang-19 -O2 -fPIC -Wno-override-module -S %t.ll -o %t.s
; RUN: %assembly %t.s | FileCheck %s --implicit-check-not="stack {{[1-9]}}"
;
; REMARK: matmul 256x256x256 bfloat -> float: dot product bfloat x bfloat -> float, register tile 6x64, nothing packed
;
; CHECK: tlx.matmul.256x256x256.bf16.bf16.f32: calls nothing
; CHECK-NEXT: loop
; CHECK-NEXT: vbroadcastss zmm 6
; CHECK-NEXT: vmovups zmm 4
; CHECK-NEXT: vdpbf16ps zmm 24
; CHECK-NEXT: stack 0

define void @permuted(ptr noalias %c, ptr noalias %x, ptr noalias %y) {
  %a = call token @llvm.tensor.load(ptr elementtype(bfloat) %x, <2 x i32> <i32 256, i32 256>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %b = call token @llvm.tensor.load(ptr elementtype(bfloat) %y, <3 x i32> <i32 128, i32 256, i32 2>, <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> zeroinitializer, <3 x i32> zeroinitializer)
  %f = call <65536 x bfloat> @llvm.tensor.reshape.permute(token %b, <3 x i32> <i32 0, i32 2, i32 1>, <2 x i32> <i32 256, i32 256>)
  %t2 = call token @llvm.tensor.typeinfo(<65536 x bfloat> %f, <2 x i32> <i32 256, i32 256>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  %p = call <65536 x float> @llvm.tensor.matmul(token %a, token %t2)
  %t = call token @llvm.tensor.typeinfo(<65536 x float> %p, <2 x i32> <i32 256, i32 256>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}

define void @contracted(ptr noalias %c, ptr noalias %x, ptr noalias %y) {
  %a = call token @llvm.tensor.load(ptr elementtype(bfloat) %x, <3 x i32> <i32 256, i32 128, i32 2>, <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> zeroinitializer, <3 x i32> zeroinitializer)
  %b = call token @llvm.tensor.load(ptr elementtype(bfloat) %y, <3 x i32> <i32 128, i32 256, i32 2>, <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> zeroinitializer, <3 x i32> zeroinitializer)
  %p = call <65536 x float> @llvm.tensor.contract(token %a, token %b, <2 x i32> <i32 1, i32 2>, <2 x i32> <i32 0, i32 2>)
  %t = call token @llvm.tensor.typeinfo(<65536 x float> %p, <2 x i32> <i32 256, i32 256>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}
