; A bfloat is the upper half of a float: no arithmetic on bfloat reaches LLVM, whose older versions cannot select it.
;
; RUN: grep -v '^;' %s | tlx-lower - -o - --target=generic | FileCheck %s --implicit-check-not=llvm.tensor.

; CHECK-LABEL: define void @f(ptr %c, ptr %a) nounwind noinline "no-builtins" {
; CHECK-NEXT: %[[T:.*]] = load <4 x i16>, ptr %a, align 2
; CHECK-NEXT: %[[T_1:.*]] = zext <4 x i16> %[[T]] to <4 x i32>
; CHECK-NEXT: %[[T_2:.*]] = shl <4 x i32> %[[T_1]], <i32 16, i32 16, i32 16, i32 16>
; CHECK-NEXT: %[[T_3:.*]] = bitcast <4 x i32> %[[T_2]] to <4 x float>
; CHECK-NEXT: store <4 x float> %[[T_3]], ptr %c, align 4
; CHECK-NEXT: ret void
; CHECK-NEXT: }

define void @f(ptr %c, ptr %a) "tlx-stage"="tiles" {
  %x = call token @llvm.tensor.load(ptr elementtype(bfloat) %a, <2 x i32> <i32 1, i32 4>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 0>)
  %v = call <4 x bfloat> @llvm.tensor.tovector(token %x)
  %w = fpext <4 x bfloat> %v to <4 x float>
  %y = call token @llvm.tensor.typeinfo(<4 x float> %w, <2 x i32> <i32 1, i32 4>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
  call void @llvm.tensor.store(ptr %c, token %y, <2 x i32> <i32 0, i32 0>)
  ret void
}
