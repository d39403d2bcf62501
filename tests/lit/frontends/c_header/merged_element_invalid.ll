; Tokens of loads that merge need an element type.
;
; RUN: not tlx raise %s 2>&1 | FileCheck --strict-whitespace %s
; CHECK: merged_element_invalid.ll:14:3: error: %m merges tokens, so what they say must be known: give the load an element type
; CHECK-NEXT: %m = select i1 %c, i32 %t, i32 %u
; CHECK-NEXT: {{^ {2}\^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~$}}
; CHECK-NEXT: merged_element_invalid.ll:12:3: note: defined here
; CHECK-NEXT: %t = call i32 (ptr, ...) @tensor_load(ptr %p, i32 4, i32 0, i32 0, i32 0)
; CHECK-NEXT: {{^ {2}\^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~$}}

define <4 x float> @f(i1 %c, ptr %p, ptr %q) {
  %t = call i32 (ptr, ...) @tensor_load(ptr %p, i32 4, i32 0, i32 0, i32 0)
  %u = call i32 (ptr, ...) @tensor_load(ptr %q, i32 4, i32 0, i32 0, i32 0)
  %m = select i1 %c, i32 %t, i32 %u
  %r = call <4 x float> (i32, ...) @tensor_tovector(i32 %m)
  ret <4 x float> %r
}

declare i32 @tensor_load(ptr, ...)

declare <4 x float> @tensor_tovector(i32, ...)
