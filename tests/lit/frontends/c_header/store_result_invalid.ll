; RUN: not tlx-lower %s -o - 2>&1 | FileCheck %s
;
; A store has no result.
; CHECK: store_result_invalid.ll:11:3: error: tensor_store: it returns nothing, but this call returns i32

define void @f(ptr %x, ptr %y) {
  %shape = alloca i32
  %t = call i32 (ptr, ...) @tensor_load_f32(ptr %x, double 0x400000004, double 0x100000000, double 0.0, double 0.0)
  br label %next
next:
  %r = call i32 (ptr, i32, ...) @tensor_store(ptr %y, i32 %t, double 0.0)
  ret void
}
declare i32 @tensor_load_f32(ptr, ...)
declare i32 @tensor_store(ptr, i32, ...)
