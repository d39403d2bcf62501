; A tensor that is passed as bytes needs the type of its elements in the name of the function.
;
; RUN: not tlx raise %s 2>&1 | FileCheck %s
; CHECK: bytes_invalid.ll:8:3: error: tensor_tovector: the tensor is passed as 64 bytes, whose element type is not known; say it in the name: tensor_tovector_i8 or

define void @f(<16 x float> %v, ptr %slot) {
  %t = call i32 (...) @tensor_typeinfo(<16 x float> %v, i64 17179869188, i64 4294967296, i64 0)
  call void @tensor_tovector(ptr sret([64 x i8]) %slot, i32 %t)
  ret void
}

declare i32 @tensor_typeinfo(...)
declare void @tensor_tovector(ptr, i32)
