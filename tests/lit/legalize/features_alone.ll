; A function with the attribute for the target's features gets them even in a file without tensor operations.
;
; RUN: tlx-lower %s --target=avx2 | FileCheck %s
; RUN: tlx verify %s

define <8 x float> @plain(<8 x float> %x) "tlx-features"="target" {
  %y = fadd <8 x float> %x, %x
  ret <8 x float> %y
}

; CHECK: define <8 x float> @plain(<8 x float> %x) "target-features"="{{.*}}+avx2{{.*}}" "min-legal-vector-width"="256"
; CHECK-NEXT: fadd
