; AVX512-FP16 computes half in whole registers; without it, and in functions of float, half is extended.
;
; RUN: grep -v '^;' %s | tlx-lower - -o - --target=avx512 --mattr=+avx512fp16 | FileCheck %s --check-prefixes=CHECK,HALF
; RUN: grep -v '^;' %s | tlx-lower - -o - --target=avx512 | FileCheck %s --check-prefixes=CHECK,FLOAT

; HALF: fdiv <32 x half>
; HALF: fcmp olt <32 x half>
; HALF: select <32 x i1> %{{.*}}, <32 x i16>
; FLOAT: fdiv <16 x float>
; FLOAT: fcmp olt <16 x float>

define void @f(ptr noalias %x, ptr noalias %c) {
  %a = call token @llvm.tensor.load(ptr elementtype(half) %x, <2 x i32> <i32 1, i32 64>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %v = call <64 x half> @llvm.tensor.tovector(token %a)
  %p = fdiv <64 x half> %v, %v
  %f = fcmp olt <64 x half> %p, %v
  %r = select <64 x i1> %f, <64 x half> %p, <64 x half> %v
  %t = call token @llvm.tensor.typeinfo(<64 x half> %r, <2 x i32> <i32 1, i32 64>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}

; Elements that become float are extended as they are loaded.
;
; CHECK: fpext <16 x half>
; CHECK: fadd <16 x float>

define void @g(ptr noalias %x, ptr noalias %c) {
  %a = call token @llvm.tensor.load(ptr elementtype(half) %x, <2 x i32> <i32 1, i32 64>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %v = call <64 x half> @llvm.tensor.tovector(token %a)
  %w = fpext <64 x half> %v to <64 x float>
  %r = fadd <64 x float> %w, %w
  store <64 x float> %r, ptr %c, align 4
  ret void
}
