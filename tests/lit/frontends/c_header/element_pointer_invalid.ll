; An opaque pointer does not determine the element type.
;
; RUN: not tlx raise %s 2>&1 | FileCheck --strict-whitespace %s
; CHECK: element_pointer_invalid.ll:9:3: error: tensor_typeinfo: got a pointer whose element type is not known; say it in the name: tensor_typeinfo_i8 or tensor_typeinfo_i16 or tensor_typeinfo_i32 or tensor_typeinfo_i64 or tensor_typeinfo_f16 or tensor_typeinfo_bf16 or tensor_typeinfo_f32 or tensor_typeinfo_f64
; CHECK-NEXT: %t = call i32 (...) @tensor_typeinfo(ptr %p, double 0x200000002, double 0x100000000, double 0.000000e+00)
; CHECK-NEXT: {{^ {2}\^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~$}}

define i32 @f(ptr %p) {
  %t = call i32 (...) @tensor_typeinfo(ptr %p, double 0x200000002, double 0x100000000, double 0.000000e+00)
  ret i32 %t
}

declare i32 @tensor_typeinfo(...)
