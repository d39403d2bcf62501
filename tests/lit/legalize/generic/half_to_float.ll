; Half is converted by integer arithmetic and one subtraction, not by a library call for each element. No step computes
; with subnormal numbers.
;
; RUN: grep -v '^;' %s | tlx-lower - -o - --target=generic | FileCheck %s --implicit-check-not=llvm.tensor.

; CHECK-LABEL: define void @f(ptr %c, ptr %a) nounwind noinline "no-builtins" {
; CHECK-NEXT: %[[T:.*]] = load <4 x i16>, ptr %a, align 2
; CHECK-NEXT: %[[T_1:.*]] = zext <4 x i16> %[[T]] to <4 x i32>
; CHECK-NEXT: %[[T_2:.*]] = and <4 x i32> %[[T_1]], <i32 32767, i32 32767, i32 32767, i32 32767>
; CHECK-NEXT: %[[T_3:.*]] = xor <4 x i32> %[[T_1]], %[[T_2]]
; CHECK-NEXT: %[[T_4:.*]] = shl <4 x i32> %[[T_3]], <i32 16, i32 16, i32 16, i32 16>
; CHECK-NEXT: %[[T_5:.*]] = shl <4 x i32> %[[T_2]], <i32 13, i32 13, i32 13, i32 13>
; CHECK-NEXT: %[[T_6:.*]] = add <4 x i32> %[[T_5]], <i32 939524096, i32 939524096, i32 939524096, i32 939524096>
; CHECK-NEXT: %[[T_7:.*]] = add <4 x i32> %[[T_5]], <i32 1879048192, i32 1879048192, i32 1879048192, i32 1879048192>
; CHECK-NEXT: %[[T_8:.*]] = add <4 x i32> %[[T_5]], <i32 947912704, i32 947912704, i32 947912704, i32 947912704>
; CHECK-NEXT: %[[T_9:.*]] = bitcast <4 x i32> %[[T_8]] to <4 x float>
; CHECK-NEXT: %[[T_10:.*]] = fsub <4 x float> %[[T_9]], <float 0x3F10000000000000, float 0x3F10000000000000, float 0x3F10000000000000, float 0x3F10000000000000>
; CHECK-NEXT: %[[T_11:.*]] = bitcast <4 x float> %[[T_10]] to <4 x i32>
; CHECK-NEXT: %[[T_12:.*]] = icmp ugt <4 x i32> %[[T_2]], <i32 31743, i32 31743, i32 31743, i32 31743>
; CHECK-NEXT: %[[T_13:.*]] = select <4 x i1> %[[T_12]], <4 x i32> %[[T_7]], <4 x i32> %[[T_6]]
; CHECK-NEXT: %[[T_14:.*]] = icmp ult <4 x i32> %[[T_2]], <i32 1024, i32 1024, i32 1024, i32 1024>
; CHECK-NEXT: %[[T_15:.*]] = select <4 x i1> %[[T_14]], <4 x i32> %[[T_11]], <4 x i32> %[[T_13]]
; CHECK-NEXT: %[[T_16:.*]] = or <4 x i32> %[[T_15]], %[[T_4]]
; CHECK-NEXT: %[[T_17:.*]] = bitcast <4 x i32> %[[T_16]] to <4 x float>
; CHECK-NEXT: store <4 x float> %[[T_17]], ptr %c, align 4
; CHECK-NEXT: ret void
; CHECK-NEXT: }

define void @f(ptr %c, ptr %a) "tlx-stage"="tiles" {
  %x = call token @llvm.tensor.load(ptr elementtype(half) %a, <2 x i32> <i32 1, i32 4>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 0>)
  %v = call <4 x half> @llvm.tensor.tovector(token %x)
  %w = fpext <4 x half> %v to <4 x float>
  %y = call token @llvm.tensor.typeinfo(<4 x float> %w, <2 x i32> <i32 1, i32 4>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
  call void @llvm.tensor.store(ptr %c, token %y, <2 x i32> <i32 0, i32 0>)
  ret void
}
