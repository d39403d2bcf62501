; The number of elements of a result fits in 64 bits.
;
; RUN: not tlx verify %s 2>&1 | FileCheck --strict-whitespace %s
; CHECK: pad_overflow_invalid.ll:14:3: error: pad: shape <4294967297, 4294967297> has 18446744082299486209 elements, which overflows 64 bits
; CHECK-NEXT: %c = call <25 x i8> @llvm.tensor.pad(token %x, <2 x i32> <i32 2147483647, i32 2147483647>, <2 x i32> <i32 2147483647, i32 2147483647>, i8 0)
; CHECK-NEXT: {{^  \^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~$}}
; CHECK-NEXT: pad_overflow_invalid.ll:12:3: note: x is 3x3 i8
; CHECK-NEXT: %x = call token @llvm.tensor.typeinfo(<9 x i8> %v, <2 x i32> <i32 3, i32 3>,
; CHECK-NEXT: {{^  \^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~$}}

define void @f(<9 x i8> %v) {
  %x = call token @llvm.tensor.typeinfo(<9 x i8> %v, <2 x i32> <i32 3, i32 3>,
      <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
  %c = call <25 x i8> @llvm.tensor.pad(token %x, <2 x i32> <i32 2147483647, i32 2147483647>, <2 x i32> <i32 2147483647, i32 2147483647>, i8 0)
  ret void
}
