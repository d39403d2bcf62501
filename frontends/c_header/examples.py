"""Programs with calls to `tlx.h` as clang writes them, for tests and fuzzers to start from."""

from __future__ import annotations

from typing import Final

_SLOTS: Final = """\
define dso_local void @slots(ptr noundef %0, ptr noundef %1, ptr noundef %2) {
  %4 = alloca ptr, align 8
  %5 = alloca ptr, align 8
  %6 = alloca <2 x i32>, align 8
  %7 = alloca i32, align 4
  %8 = alloca <4 x float>, align 16
  %9 = alloca double, align 8
  store ptr %0, ptr %4, align 8
  store ptr %1, ptr %5, align 8
  store <2 x i32> <i32 2, i32 2>, ptr %6, align 8
  %10 = load ptr, ptr %4, align 8
  %11 = load double, ptr %6, align 8
  %12 = call i32 (ptr, ...) @tensor_load_f32(ptr noundef %10, double noundef %11, double noundef 0x100000000,
      double noundef 0.000000e+00, double noundef 0.000000e+00)
  store i32 %12, ptr %7, align 4
  %13 = load i32, ptr %7, align 4
  %14 = load i32, ptr %7, align 4
  %15 = call <4 x float> (i32, ...) @tensor_matmul(i32 noundef %13, i32 noundef %14)
  store <4 x float> %15, ptr %8, align 16
  %16 = load <4 x float>, ptr %8, align 16
  %17 = load <2 x i32>, ptr %6, align 8
  store <2 x i32> %17, ptr %9, align 8
  %18 = load double, ptr %9, align 8
  %19 = call i32 (...) @tensor_typeinfo(<4 x float> noundef %16, double noundef %18,
      double noundef 0x100000000, double noundef 0.000000e+00)
  %20 = load ptr, ptr %5, align 8
  call void (ptr, i32, ...) @tensor_store(ptr noundef %20, i32 noundef %19, double noundef 0.000000e+00)
  ret void
}
declare i32 @tensor_load_f32(ptr noundef, ...)
declare <4 x float> @tensor_matmul(i32 noundef, ...)
declare i32 @tensor_typeinfo(...)
declare void @tensor_store(ptr noundef, i32 noundef, ...)
"""
_LOOP: Final = """\
define void @loop(ptr %out, <4 x float> %v, i32 %n) {
entry:
  %acc = alloca <4 x float>, align 16
  %i = alloca i32, align 4
  %token = alloca i32, align 4
  store <4 x float> %v, ptr %acc, align 16
  store i32 0, ptr %i, align 4
  br label %head

head:
  %i.0 = load i32, ptr %i, align 4
  %more = icmp slt i32 %i.0, %n
  br i1 %more, label %body, label %end

body:
  %acc.0 = load <4 x float>, ptr %acc, align 16
  %t = call i32 (...) @tensor_typeinfo(<4 x float> %acc.0, double 0x200000002, double 0x100000000, double 0.000000e+00)
  store i32 %t, ptr %token, align 4
  %t.0 = load i32, ptr %token, align 4
  %r = call <4 x float> (i32, ...) @tensor_relu(i32 %t.0)
  store <4 x float> %r, ptr %acc, align 16
  %i.1 = load i32, ptr %i, align 4
  %i.next = add nsw i32 %i.1, 1
  store i32 %i.next, ptr %i, align 4
  br label %head

end:
  %last = load <4 x float>, ptr %acc, align 16
  store <4 x float> %last, ptr %out, align 16
  ret void
}
declare i32 @tensor_typeinfo(...)
declare <4 x float> @tensor_relu(i32, ...)
"""
_MERGED: Final = """\
define <4 x float> @merged(i1 %c, <4 x float> %v, ptr %p) {
  br i1 %c, label %then, label %else

then:
  %a = call i32 (...) @tensor_typeinfo(<4 x float> %v, i32 4, i32 0, i32 1)
  br label %end

else:
  %b = call i32 (ptr, ...) @tensor_load_f32(ptr %p, i32 4, i32 0, i32 1, i32 0)
  br label %end

end:
  %t = phi i32 [ %a, %then ], [ %b, %else ]
  %r = call <4 x float> (i32, ...) @tensor_tovector(i32 %t)
  ret <4 x float> %r
}
declare i32 @tensor_typeinfo(...)
declare i32 @tensor_load_f32(ptr, ...)
declare <4 x float> @tensor_tovector(i32, ...)
"""
_HELPER: Final = """\
define internal i32 @token_of(ptr byval(<16 x float>) align 64 %v) {
  %w = load <16 x float>, ptr %v, align 64
  %t = call i32 (...) @tensor_typeinfo(<16 x float> %w, i32 16, i32 0, i32 0)
  ret i32 %t
}
define <16 x float> @helper(ptr %p) {
  %t = call i32 @token_of(ptr byval(<16 x float>) align 64 %p)
  %r = call <16 x float> (i32, ...) @tensor_exp(i32 %t)
  ret <16 x float> %r
}
declare i32 @tensor_typeinfo(...)
declare <16 x float> @tensor_exp(i32, ...)
"""
EXAMPLES: Final = (_SLOTS, _LOOP, _MERGED, _HELPER)
