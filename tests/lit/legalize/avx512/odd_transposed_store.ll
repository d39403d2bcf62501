; Columns of nine floats are stored by one masked instruction each, not in parts of eight and one: LLVM also compiles them
; in half the time. AVX2 has no registers for masks.
; REQUIRES: clang-19
; RUN: grep -v '^;' %s | tlx-lower - -o %t.ll --target=avx512
; RUN: FileCheck %s --implicit-check-not='<9 x float>' < %t.ll
; RUN: clang-19 -O2 -fPIC -Wno-override-module -S %t.ll -o - | FileCheck %s --check-prefix=ASM
; RUN: grep -v '^;' %s | tlx-lower - --target=avx2 -o - | FileCheck %s --check-prefix=AVX2 --implicit-check-not=masked
;
; CHECK-LABEL: define internal void @tlx.matmul.49x960x512.f32.f32.f32.epilogue(
; CHECK-COUNT-16: call void @llvm.masked.store.v16f32
;
; ASM-LABEL: tlx.matmul.49x960x512.f32.f32.f32.epilogue:
; ASM-COUNT-16: vmovups %zmm{{[0-9]+}}, {{[0-9]*}}(%r{{[a-z0-9]+}}) {%k1}
;
; AVX2: store <{{[357]}} x float>
define void @f(ptr noalias %c, ptr %a, ptr %b) {
  %lhs = call token @llvm.tensor.load(ptr elementtype(float) %a, <2 x i32> <i32 512, i32 960>, <2 x i32> <i32 1, i32 0>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %rhs = call token @llvm.tensor.load(ptr elementtype(float) %b, <2 x i32> <i32 49, i32 512>, <2 x i32> <i32 1, i32 0>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <47040 x float> @llvm.tensor.matmul(token %lhs, token %rhs)
  %t = call token @llvm.tensor.typeinfo(<47040 x float> %m, <2 x i32> <i32 960, i32 49>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}
