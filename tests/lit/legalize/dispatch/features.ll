; Additional features: those that CPUID reports are checked at run time, tuning features need no check,
; and others, which a program cannot detect, are errors.
;
; RUN: grep -v '^;' %s | tlx-lower - -o - --target=avx2,avx512 --mattr=+prefer-256-bit,+avx512vbmi2 | FileCheck %s
; RUN: grep -v '^;' %s | tlx-lower - -o - --target=generic,avx2 --mattr=+ssse3,+sse4.1 | FileCheck %s --check-prefix=OLD
; RUN: grep -v '^;' %s | not tlx-lower - -o - --target=avx2,avx512 --mattr=+sha 2>&1 | FileCheck %s --check-prefix=SHA
;
; CHECK: "target-features"="+avx2,+fma,+f16c,{{.*}}+prefer-256-bit,+avx512vbmi2"
; CHECK: define internal void @tlx.cpu.detect()
; The sixth bit of ECX for AVX-512 VBMI2 only.
; CHECK: and i32 %{{.*}}, 64
;
; Bits 9 and 19 of ECX, besides those of FMA (12) and F16C (29).
; OLD: define internal void @tlx.cpu.detect()
; OLD: and i32 %{{.*}}, 537399808
;
; SHA: tlx-lower: error: feature 'sha': a program with versions for several targets cannot detect it at run time; lower for one target, or without the feature

define void @f(ptr noalias %c, ptr %a, ptr %b) {
  %x = call token @llvm.tensor.load(ptr elementtype(float) %a, <3 x i32> <i32 1, i32 16, i32 16>, <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> zeroinitializer, <3 x i32> zeroinitializer)
  %y = call token @llvm.tensor.load(ptr elementtype(float) %b, <3 x i32> <i32 1, i32 16, i32 16>, <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> zeroinitializer, <3 x i32> zeroinitializer)
  %m = call <256 x float> @llvm.tensor.matmul(token %x, token %y)
  %t = call token @llvm.tensor.typeinfo(<256 x float> %m, <3 x i32> <i32 1, i32 16, i32 16>, <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <3 x i32> zeroinitializer)
  ret void
}
