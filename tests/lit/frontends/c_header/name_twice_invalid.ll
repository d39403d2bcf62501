; Front ends see what LLVM accepts: a name that is defined twice is an error at the second definition, with or without
; the judge.
; RUN: not tlx-lower %s 2>&1 | FileCheck %s
; RUN: not tlx-lower --no-verify-each %s 2>&1 | FileCheck %s
; RUN: not tlx raise %s 2>&1 | FileCheck %s
; RUN: not tlx verify %s 2>&1 | FileCheck %s
; RUN: not tlx run --evaluate %s 2>&1 | FileCheck %s
;
; CHECK: name_twice_invalid.ll:[[#@LINE+7]]:3: error: multiple definition of local value named 'slot'
; CHECK-NEXT: %slot = alloca i32
; CHECK-NEXT: ^

define void @f(ptr %x) {
  %slot = alloca i32
  %shape = alloca double
  %slot = alloca i32
  %d = load double, ptr %shape
  %t = call i32 (ptr, ...) @tensor_load_f32(ptr %x, double %d, double %d, double %d, double %d)
  %u = load i32, ptr %slot
  ret void
}

declare i32 @tensor_load_f32(ptr, ...)
