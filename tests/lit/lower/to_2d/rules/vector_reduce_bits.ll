; Reductions of i1 (or, and, add) as LLVM's optimiser writes them, on the integer of all bits. They become reductions of
; the vector; there is no integer of 5000 bits.
;
; RUN: tlx-lower %s --target=avx512 --stop-after=to-2d --check | grep -v '^;' | FileCheck %s --implicit-check-not=bitcast

; CHECK-LABEL: define i1 @any(
; CHECK:         @llvm.tensor.reduce.or.v1i8
; CHECK-NOT:     xor
; CHECK:         ret i1
define i1 @any(ptr noalias %x) {
  %v = load <5000 x float>, ptr %x
  %k = fcmp ogt <5000 x float> %v, splat (float 3.0)
  %b = bitcast <5000 x i1> %k to i5000
  %r = icmp ne i5000 %b, 0
  ret i1 %r
}

; CHECK-LABEL: define i1 @none_or_not_all(
; CHECK:         @llvm.tensor.reduce.or.v1i8
; CHECK:         %not = xor i1 %{{.*}}, true
; CHECK:         @llvm.tensor.reduce.and.v1i8
; CHECK:         %not.1 = xor i1 %{{.*}}, true
; CHECK:         ret i1
define i1 @none_or_not_all(ptr noalias %x) {
  %v = load <5000 x float>, ptr %x
  %k = fcmp ogt <5000 x float> %v, splat (float 3.0)
  %b = bitcast <5000 x i1> %k to i5000
  %none = icmp eq i5000 %b, 0
  %some = icmp ne i5000 %b, -1
  %r = or i1 %none, %some
  ret i1 %r
}

; CHECK-LABEL: define i32 @count(
; CHECK:         @llvm.tensor.reduce.add.v1i32
; CHECK:         trunc i32 %{{.*}} to i1
; CHECK:         ret i32
define i32 @count(ptr noalias %x) {
  %v = load <5000 x float>, ptr %x
  %k = fcmp ogt <5000 x float> %v, splat (float 3.0)
  %b = bitcast <5000 x i1> %k to i5000
  %n = call i5000 @llvm.ctpop.i5000(i5000 %b)
  %t = trunc i5000 %n to i32
  %odd = trunc i5000 %n to i1
  %r = select i1 %odd, i32 %t, i32 0
  ret i32 %r
}
declare i5000 @llvm.ctpop.i5000(i5000)
