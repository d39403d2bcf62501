; A token is not returned from a function that other files can call.
;
; RUN: not tlx raise %s 2>&1 | FileCheck --strict-whitespace %s
; CHECK: token_returned_invalid.ll:13:11: error: a tensor's token is returned from @f: make it static inline and compile with -O1, or take and return vectors
; CHECK-NEXT: ret i32 %t
; CHECK-NEXT: {{^ {10}\^~$}}
; CHECK-NEXT: token_returned_invalid.ll:12:3: note: defined here
; CHECK-NEXT: %t = call i32 (...) @tensor_typeinfo(<4 x float> %v, double 0x200000002, double 0x100000000, double 0.000000e+00)
; CHECK-NEXT: {{^ {2}\^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~$}}

define i32 @f(<4 x float> %v) {
  %t = call i32 (...) @tensor_typeinfo(<4 x float> %v, double 0x200000002, double 0x100000000, double 0.000000e+00)
  ret i32 %t
}

declare i32 @tensor_typeinfo(...)
