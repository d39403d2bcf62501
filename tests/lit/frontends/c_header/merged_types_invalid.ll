; Tokens that merge have the same type.
;
; RUN: not tlx raise %s 2>&1 | FileCheck --strict-whitespace %s
; CHECK: merged_types_invalid.ll:23:3: error: %m is a token of 2x2 float on one path and of 4 float on another
; CHECK-NEXT: %m = phi i32 [ %t, %0 ], [ %u, %then ]
; CHECK-NEXT: {{^ {2}\^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~$}}
; CHECK-NEXT: merged_types_invalid.ll:15:3: note: defined here
; CHECK-NEXT: %t = call i32 (...) @tensor_typeinfo(<4 x float> %v, double 0x200000002, double 0x100000000, double 0.000000e+00)
; CHECK-NEXT: {{^ {2}\^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~$}}
; CHECK-NEXT: merged_types_invalid.ll:19:3: note: defined here
; CHECK-NEXT: %u = call i32 (...) @tensor_typeinfo(<4 x float> %v, i32 4, i32 0, i32 0)
; CHECK-NEXT: {{^ {2}\^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~$}}

define <4 x float> @f(i1 %c, <4 x float> %v) {
  %t = call i32 (...) @tensor_typeinfo(<4 x float> %v, double 0x200000002, double 0x100000000, double 0.000000e+00)
  br i1 %c, label %then, label %end

then:
  %u = call i32 (...) @tensor_typeinfo(<4 x float> %v, i32 4, i32 0, i32 0)
  br label %end

end:
  %m = phi i32 [ %t, %0 ], [ %u, %then ]
  %r = call <4 x float> (i32, ...) @tensor_tovector(i32 %m)
  ret <4 x float> %r
}

declare i32 @tensor_typeinfo(...)
declare <4 x float> @tensor_tovector(i32, ...)
