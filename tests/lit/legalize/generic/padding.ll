; Padding is neither read nor written, and zero in registers: the data is loaded as a shorter vector.
;
; RUN: grep -v '^;' %s | tlx-lower - -o - --target=generic | FileCheck %s --implicit-check-not=llvm.tensor.

; CHECK-LABEL: define void @f(ptr %c, ptr %a) nounwind noinline "no-builtins" {
; CHECK-NEXT: %[[T:.*]] = load <4 x float>, ptr %a, align 4
; CHECK-NEXT: %[[T_1:.*]] = getelementptr inbounds float, ptr %a, i64 4
; CHECK-NEXT: %[[T_2:.*]] = load <2 x float>, ptr %[[T_1]], align 4
; CHECK-NEXT: %[[T_3:.*]] = shufflevector <2 x float> %[[T_2]], <2 x float> undef, <3 x i32> <i32 0, i32 1, i32 undef>
; CHECK-NEXT: %[[T_4:.*]] = select <3 x i1> <i1 true, i1 true, i1 false>, <3 x float> %[[T_3]], <3 x float> zeroinitializer
; CHECK-NEXT: %[[T_5:.*]] = fadd <4 x float> %[[T]], %[[T]]
; CHECK-NEXT: %[[T_6:.*]] = fadd <3 x float> %[[T_4]], %[[T_4]]
; CHECK-NEXT: %{{.*}} = fadd <4 x float> zeroinitializer, zeroinitializer
; CHECK-NEXT: %{{.*}} = fadd <3 x float> zeroinitializer, zeroinitializer
; CHECK-NEXT: store <4 x float> %[[T_5]], ptr %c, align 4
; CHECK-NEXT: %[[T_9:.*]] = getelementptr inbounds float, ptr %c, i64 4
; CHECK-NEXT: %[[T_10:.*]] = shufflevector <3 x float> %[[T_6]], <3 x float> undef, <2 x i32> <i32 0, i32 1>
; CHECK-NEXT: store <2 x float> %[[T_10]], ptr %[[T_9]], align 4
; CHECK-NEXT: ret void
; CHECK-NEXT: }

define void @f(ptr %c, ptr %a) "tlx-stage"="tiles" {
  %x = call token @llvm.tensor.load(ptr elementtype(float) %a, <2 x i32> <i32 2, i32 7>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 1, i32 1>, <2 x i32> <i32 0, i32 0>)
  %v = call <14 x float> @llvm.tensor.tovector(token %x)
  %w = fadd <14 x float> %v, %v
  %y = call token @llvm.tensor.typeinfo(<14 x float> %w, <2 x i32> <i32 2, i32 7>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 1, i32 1>)
  call void @llvm.tensor.store(ptr %c, token %y, <2 x i32> <i32 0, i32 0>)
  ret void
}
