; Arithmetic on half and bfloat is done in float and rounded, which is exact for one operation. Constants are stored as bits.
;
; RUN: grep -v '^;' %s | tlx-lower - -o - --target=generic | FileCheck %s --implicit-check-not=llvm.tensor.

; CHECK-LABEL: define void @f(ptr %c, ptr %a) nounwind noinline "no-builtins" {
; CHECK-NEXT: %[[T:.*]] = load <4 x i16>, ptr %a, align 2
; CHECK-NEXT: %[[T_1:.*]] = zext <4 x i16> %[[T]] to <4 x i32>
; CHECK-NEXT: %[[T_2:.*]] = shl <4 x i32> %[[T_1]], <i32 16, i32 16, i32 16, i32 16>
; CHECK-NEXT: %[[T_3:.*]] = bitcast <4 x i32> %[[T_2]] to <4 x float>
; CHECK-NEXT: %[[T_4:.*]] = zext <4 x i16> <i16 16256, i16 16384, i16 16448, i16 48896> to <4 x i32>
; CHECK-NEXT: %[[T_5:.*]] = shl <4 x i32> %[[T_4]], <i32 16, i32 16, i32 16, i32 16>
; CHECK-NEXT: %[[T_6:.*]] = bitcast <4 x i32> %[[T_5]] to <4 x float>
; CHECK-NEXT: %{{.*}} = fadd <4 x float> %[[T_3]], %[[T_6]]
; CHECK: trunc <4 x i32> %{{.*}} to <4 x i16>

define void @f(ptr %c, ptr %a) "tlx-stage"="tiles" {
  %x = call token @llvm.tensor.load(ptr elementtype(bfloat) %a, <2 x i32> <i32 1, i32 4>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 0>)
  %v = call <4 x bfloat> @llvm.tensor.tovector(token %x)
  %w = fadd <4 x bfloat> %v, <bfloat 1.0, bfloat 2.0, bfloat 0xR4040, bfloat -0.5>
  %y = call token @llvm.tensor.typeinfo(<4 x bfloat> %w, <2 x i32> <i32 1, i32 4>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
  call void @llvm.tensor.store(ptr %c, token %y, <2 x i32> <i32 0, i32 0>)
  ret void
}
