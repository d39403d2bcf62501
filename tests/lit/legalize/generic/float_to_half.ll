; A float is rounded to half by integer arithmetic, and by an addition if the result is subnormal.
;
; RUN: grep -v '^;' %s | tlx-lower - -o - --target=generic | FileCheck %s --implicit-check-not=llvm.tensor.

; CHECK-LABEL: define void @f(ptr %c, ptr %a) nounwind noinline "no-builtins" {
; CHECK-NEXT: %[[T:.*]] = load <4 x float>, ptr %a, align 4
; CHECK-NEXT: %[[T_1:.*]] = bitcast <4 x float> %[[T]] to <4 x i32>
; CHECK-NEXT: %[[T_2:.*]] = and <4 x i32> %[[T_1]], <i32 -2147483648, i32 -2147483648, i32 -2147483648, i32 -2147483648>
; CHECK-NEXT: %[[T_3:.*]] = xor <4 x i32> %[[T_1]], %[[T_2]]
; CHECK-NEXT: %[[T_4:.*]] = lshr <4 x i32> %[[T_3]], <i32 13, i32 13, i32 13, i32 13>
; CHECK-NEXT: %[[T_5:.*]] = and <4 x i32> %[[T_4]], <i32 1, i32 1, i32 1, i32 1>
; CHECK-NEXT: %[[T_6:.*]] = add <4 x i32> %[[T_5]], <i32 -939520001, i32 -939520001, i32 -939520001, i32 -939520001>
; CHECK-NEXT: %[[T_7:.*]] = add <4 x i32> %[[T_3]], %[[T_6]]
; CHECK-NEXT: %[[T_8:.*]] = lshr <4 x i32> %[[T_7]], <i32 13, i32 13, i32 13, i32 13>
; CHECK-NEXT: %[[T_9:.*]] = bitcast <4 x i32> %[[T_3]] to <4 x float>
; CHECK-NEXT: %[[T_10:.*]] = fadd <4 x float> %[[T_9]], <float 0x3FE0000000000000, float 0x3FE0000000000000, float 0x3FE0000000000000, float 0x3FE0000000000000>
; CHECK-NEXT: %[[T_11:.*]] = bitcast <4 x float> %[[T_10]] to <4 x i32>
; CHECK-NEXT: %[[T_12:.*]] = sub <4 x i32> %[[T_11]], <i32 1056964608, i32 1056964608, i32 1056964608, i32 1056964608>
; CHECK-NEXT: %[[T_13:.*]] = icmp ult <4 x i32> %[[T_3]], <i32 947912704, i32 947912704, i32 947912704, i32 947912704>
; CHECK-NEXT: %[[T_14:.*]] = select <4 x i1> %[[T_13]], <4 x i32> %[[T_12]], <4 x i32> %[[T_8]]
; CHECK-NEXT: %[[T_15:.*]] = icmp ugt <4 x i32> %[[T_3]], <i32 2139095040, i32 2139095040, i32 2139095040, i32 2139095040>
; CHECK-NEXT: %[[T_16:.*]] = select <4 x i1> %[[T_15]], <4 x i32> <i32 32256, i32 32256, i32 32256, i32 32256>, <4 x i32> <i32 31744, i32 31744, i32 31744, i32 31744>
; CHECK-NEXT: %[[T_17:.*]] = icmp ugt <4 x i32> %[[T_3]], <i32 1199570943, i32 1199570943, i32 1199570943, i32 1199570943>
; CHECK-NEXT: %[[T_18:.*]] = select <4 x i1> %[[T_17]], <4 x i32> %[[T_16]], <4 x i32> %[[T_14]]
; CHECK-NEXT: %[[T_19:.*]] = lshr <4 x i32> %[[T_2]], <i32 16, i32 16, i32 16, i32 16>
; CHECK-NEXT: %[[T_20:.*]] = or <4 x i32> %[[T_18]], %[[T_19]]
; CHECK-NEXT: %[[T_21:.*]] = trunc <4 x i32> %[[T_20]] to <4 x i16>
; CHECK-NEXT: store <4 x i16> %[[T_21]], ptr %c, align 2
; CHECK-NEXT: ret void
; CHECK-NEXT: }

define void @f(ptr %c, ptr %a) "tlx-stage"="tiles" {
  %x = call token @llvm.tensor.load(ptr elementtype(float) %a, <2 x i32> <i32 1, i32 4>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 0>)
  %v = call <4 x float> @llvm.tensor.tovector(token %x)
  %w = fptrunc <4 x float> %v to <4 x half>
  %y = call token @llvm.tensor.typeinfo(<4 x half> %w, <2 x i32> <i32 1, i32 4>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
  call void @llvm.tensor.store(ptr %c, token %y, <2 x i32> <i32 0, i32 0>)
  ret void
}
