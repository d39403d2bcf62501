; Functions whose names resemble placeholders, defined here or in a library, are left alone.
;
; RUN: tlx raise %s | cmp - %s

define i32 @tensor_load(i32 %n) {
  ret i32 %n
}

define i32 @f(i32 %n) {
  %a = call i32 @tensor_load(i32 %n)
  %b = call i32 @tensor_create(i32 %a)
  ret i32 %b
}

declare i32 @tensor_create(i32)
