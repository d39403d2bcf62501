; A token is not passed to a function without a body.
;
; RUN: not tlx raise %s 2>&1 | FileCheck --strict-whitespace %s
; CHECK: token_passed_invalid.ll:13:22: error: a tensor's token is passed to @use, whose body is not known here: make it static inline and compile with -O1, or take and return vectors
; CHECK-NEXT: call void @use(i32 %t)
; CHECK-NEXT: {{^ {21}\^~$}}
; CHECK-NEXT: token_passed_invalid.ll:12:3: note: defined here
; CHECK-NEXT: %t = call i32 (...) @tensor_typeinfo(<4 x float> %v, double 0x200000002, double 0x100000000, double 0.000000e+00)
; CHECK-NEXT: {{^ {2}\^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~$}}

define void @f(<4 x float> %v) {
  %t = call i32 (...) @tensor_typeinfo(<4 x float> %v, double 0x200000002, double 0x100000000, double 0.000000e+00)
  call void @use(i32 %t)
  ret void
}

declare void @use(i32)

declare i32 @tensor_typeinfo(...)
