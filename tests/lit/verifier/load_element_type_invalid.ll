; The element type of a load is one that tensors support.
;
; RUN: not tlx verify %s 2>&1 | FileCheck --strict-whitespace %s
; CHECK: load_element_type_invalid.ll:9:63: error: load: tensors cannot have elements of type x86_fp80: use i1, i8, i16, i32, i64, half, bfloat, float, double
; CHECK-NEXT: %t = call token @llvm.tensor.load(ptr elementtype(x86_fp80) %p, <2 x i32> <i32 3, i32 4>,
; CHECK-NEXT: {{^ {62}\^~$}}

define void @f(ptr %p) {
  %t = call token @llvm.tensor.load(ptr elementtype(x86_fp80) %p, <2 x i32> <i32 3, i32 4>,
      <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 0>)
  ret void
}
