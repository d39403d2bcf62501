; The width of vectors on the generic target follows from --mcpu, --mattr, --vector-bits, the triple or the function's features.
; Kernels use plain vectors only.
;
; RUN: grep -v '^;' %s | tlx-lower - -o - --target=generic --mcpu=skylake-avx512 | FileCheck %s --check-prefixes=CHECK,WIDE,FEATURES --implicit-check-not=llvm.x86
; RUN: grep -v '^;' %s | tlx-lower - -o - --target=generic --mattr=+avx512f | FileCheck %s --check-prefixes=CHECK,WIDE,ATTR
; RUN: grep -v '^;' %s | tlx-lower - -o - --target=generic --vector-bits=512 | FileCheck %s --check-prefixes=CHECK,WIDE --implicit-check-not=target-features
; RUN: grep -v '^;' %s | tlx-lower - -o - --target=generic --mattr=+avx512f --vector-bits=128 | FileCheck %s --check-prefixes=CHECK,ATTR,NARROW
; RUN: sed 's/%%b) {/%%b) "target-features"="+avx,+avx2,+fma,-avx512f" {/' %s | grep -v '^;' | tlx-lower - -o - --target=generic | FileCheck %s --check-prefix=HALF
; RUN: grep -v '^;' %s | tlx-lower - -o - --target=generic --mcpu=haswell | FileCheck %s --check-prefix=HALF
; RUN: grep -v '^;' %s | tlx-lower - -o - --target=generic --mcpu=x86-64 | FileCheck %s --check-prefix=NARROW
; RUN: tlx-lower %s -o %t.ll --target=generic --mtriple=aarch64-linux-gnu --remarks=%t
; RUN: FileCheck %s --check-prefix=NEON --input-file=%t
; RUN: not tlx-lower %s --target=avx2 --vector-bits=512 2>&1 | FileCheck %s --check-prefix=FIXED
;
; CHECK: define internal void @tlx.matmul.64x64x64.f32.f32.f32(ptr noalias %c, ptr %a, ptr %b) nounwind noinline "no-builtins"
; FEATURES-SAME: "target-features"="+avx2,+fma,+f16c,+avx512f,+avx512bw,+avx512dq,+avx512vl"
; ATTR-SAME: "target-features"="+avx512f"
; WIDE-SAME: "min-legal-vector-width"="512" "prefer-vector-width"="512"
; WIDE: call <16 x float> @llvm.fm{{a|uladd}}.v16f32
; HALF: define internal {{.*}}"target-features"="{{.*}}+avx2{{.*}} "min-legal-vector-width"="256"
; HALF: call <8 x float> @llvm.fmuladd.v8f32
; NARROW: call <4 x float> @llvm.fm{{a|uladd}}.v4f32
; NEON: register tile 6x16
; FIXED: error: vectors of 512 bits: target avx2 has vectors of 256 bits

define void @f(ptr noalias %c, ptr %a, ptr %b) {
  %lhs = call token @llvm.tensor.load(ptr elementtype(float) %a, <2 x i32> <i32 64, i32 64>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %rhs = call token @llvm.tensor.load(ptr elementtype(float) %b, <2 x i32> <i32 64, i32 64>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <4096 x float> @llvm.tensor.matmul(token %lhs, token %rhs)
  %t = call token @llvm.tensor.typeinfo(<4096 x float> %m, <2 x i32> <i32 64, i32 64>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}
