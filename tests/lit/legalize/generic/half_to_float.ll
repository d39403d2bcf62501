; Half is converted by integer arithmetic and one subtraction, not by a library call for each element. No step computes
; with subnormal numbers.
;
; RUN: grep -v '^;' %s | tlx-lower - -o - --target=generic | FileCheck %s \
; RUN: --implicit-check-not=llvm.tensor. --implicit-check-not=call --implicit-check-not=fpext --implicit-check-not=fsub \
; RUN: --implicit-check-not=fadd --implicit-check-not=fmul

; CHECK-LABEL: define void @f(
; CHECK: load <4 x i16>, ptr %a
; CHECK: fsub <4 x float>
; CHECK: store <4 x float> %{{.*}}, ptr %c

define void @f(ptr %c, ptr %a) "tlx-stage"="tiles" {
  %x = call token @llvm.tensor.load(ptr elementtype(half) %a, <2 x i32> <i32 1, i32 4>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 0>)
  %v = call <4 x half> @llvm.tensor.tovector(token %x)
  %w = fpext <4 x half> %v to <4 x float>
  %y = call token @llvm.tensor.typeinfo(<4 x float> %w, <2 x i32> <i32 1, i32 4>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
  call void @llvm.tensor.store(ptr %c, token %y, <2 x i32> <i32 0, i32 0>)
  ret void
}
