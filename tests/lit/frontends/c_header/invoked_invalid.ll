; A placeholder does not throw.
;
; RUN: not tlx raise %s 2>&1 | FileCheck --strict-whitespace %s
; CHECK: invoked_invalid.ll:9:3: error: tensor_typeinfo is called where it might throw: declare it noexcept
; CHECK-NEXT: %t = invoke i32 (...) @tensor_typeinfo(<4 x float> %v, i32 4, i32 0, i32 0) to label %a unwind label %b
; CHECK-NEXT: {{^ {2}\^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~$}}

define void @f(<4 x float> %v) personality ptr null {
  %t = invoke i32 (...) @tensor_typeinfo(<4 x float> %v, i32 4, i32 0, i32 0) to label %a unwind label %b

a:
  ret void

b:
  %e = landingpad { ptr, i32 } cleanup
  ret void
}

declare i32 @tensor_typeinfo(...)
