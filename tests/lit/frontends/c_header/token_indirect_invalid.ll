; A token is not passed through a pointer to a function.
;
; RUN: not tlx raise %s 2>&1 | FileCheck --strict-whitespace %s
; CHECK: token_indirect_invalid.ll:13:22: error: a tensor's token is passed through a pointer to a function: call the function by its name
; CHECK-NEXT: call void %use(i32 %t)
; CHECK-NEXT: {{^ {21}\^~$}}
; CHECK-NEXT: token_indirect_invalid.ll:12:3: note: defined here
; CHECK-NEXT: %t = call i32 (...) @tensor_typeinfo(<4 x float> %v, double 0x200000002, double 0x100000000, double 0.000000e+00)
; CHECK-NEXT: {{^ {2}\^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~$}}

define void @f(<4 x float> %v, ptr %use) {
  %t = call i32 (...) @tensor_typeinfo(<4 x float> %v, double 0x200000002, double 0x100000000, double 0.000000e+00)
  call void %use(i32 %t)
  ret void
}

declare i32 @tensor_typeinfo(...)
