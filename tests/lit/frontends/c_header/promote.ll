; Variables become SSA values: tokens, shapes read as double, merging values, and uninitialised ones.
;
; RUN: grep -v '^;' %s | tlx raise | FileCheck %s
; RUN: grep -v '^;' %s | tlx raise | tlx verify | count 0

; CHECK-LABEL: define void @loop(
; CHECK-SAME: {{\) #1 {$}}
; CHECK-NEXT: entry:
; CHECK-NEXT: br label %head
; CHECK: head:
; CHECK-NEXT: [[ACC:%.*]] = phi <4 x float> [ %v, %entry ], [ %r, %body ]
; CHECK-NEXT: [[I:%.*]] = phi i32 [ 0, %entry ], [ %i.next, %body ]
; CHECK-NEXT: %more = icmp slt i32 [[I]], %n
; CHECK-NEXT: br i1 %more, label %body, label %end
; CHECK: body:
; CHECK-NEXT: %t = call token @llvm.tensor.typeinfo.v4f32.v2i32(<4 x float> [[ACC]], <2 x i32> <i32 2, i32 2>,
; CHECK-NEXT: %r = call <4 x float> @llvm.tensor.matmul.v4f32(token %t, token %t)
; CHECK-NEXT: %i.next = add nsw i32 [[I]], 1
; CHECK-NEXT: br label %head
; CHECK: end:
; CHECK-NEXT: store <4 x float> [[ACC]], ptr %out
; CHECK-NEXT: ret void
define void @loop(ptr %out, <4 x float> %v, i32 %n) #0 {
entry:
  %out.addr = alloca ptr, align 8
  %n.addr = alloca i32, align 4
  %acc = alloca <4 x float>, align 16
  %i = alloca i32, align 4
  %token = alloca i32, align 4
  %shape = alloca <2 x i32>, align 8
  %coerced = alloca <2 x i32>, align 8
  store ptr %out, ptr %out.addr, align 8
  store i32 %n, ptr %n.addr, align 4
  store <4 x float> %v, ptr %acc, align 16
  store i32 0, ptr %i, align 4
  store <2 x i32> <i32 2, i32 2>, ptr %shape, align 8
  br label %head

head:
  %i.0 = load i32, ptr %i, align 4
  %n.0 = load i32, ptr %n.addr, align 4
  %more = icmp slt i32 %i.0, %n.0
  br i1 %more, label %body, label %end

body:
  %acc.0 = load <4 x float>, ptr %acc, align 16
  %shape.0 = load <2 x i32>, ptr %shape, align 8
  store <2 x i32> %shape.0, ptr %coerced, align 8
  %coerced.0 = load double, ptr %coerced, align 8
  %t = call i32 (...) @tensor_typeinfo(<4 x float> %acc.0, double %coerced.0, double 0x100000000, double 0.000000e+00)
  store i32 %t, ptr %token, align 4
  %t.0 = load i32, ptr %token, align 4
  %r = call <4 x float> (i32, ...) @tensor_matmul(i32 %t.0, i32 %t.0)
  store <4 x float> %r, ptr %acc, align 16
  %i.1 = load i32, ptr %i, align 4
  %i.next = add nsw i32 %i.1, 1
  store i32 %i.next, ptr %i, align 4
  br label %head

end:
  %out.0 = load ptr, ptr %out.addr, align 8
  %acc.1 = load <4 x float>, ptr %acc, align 16
  store <4 x float> %acc.1, ptr %out.0
  ret void
}

; A variable that escapes, is volatile or is accessed in parts stays in memory; an uninitialised one is undefined.
; CHECK-LABEL: define <4 x float> @kept(
; CHECK-NEXT: %escapes = alloca i32
; CHECK-NEXT: %is.volatile = alloca i32
; CHECK-NEXT: %in.parts = alloca <4 x float>
; CHECK-NEXT: call void @use(ptr %escapes)
; CHECK-NEXT: load volatile i32, ptr %is.volatile
; CHECK-NEXT: store <4 x float> %v, ptr %in.parts
; CHECK-NEXT: store float 0.000000e+00, ptr %in.parts
; CHECK-NEXT: %w = load <4 x float>, ptr %in.parts
; CHECK-NEXT: %t = call token @llvm.tensor.typeinfo.v4f32.v1i32(<4 x float> %w,
; CHECK-NEXT: %r = call <4 x float> @llvm.tensor.tovector.v4f32(token %t)
; CHECK-NEXT: call void @number(i32 undef)
; CHECK-NEXT: ret <4 x float> %r
define <4 x float> @kept(<4 x float> %v) {
  %escapes = alloca i32
  %is.volatile = alloca i32
  %in.parts = alloca <4 x float>
  %never.set = alloca i32
  call void @use(ptr %escapes)
  %a = load volatile i32, ptr %is.volatile
  store <4 x float> %v, ptr %in.parts
  store float 0.000000e+00, ptr %in.parts
  %w = load <4 x float>, ptr %in.parts
  %t = call i32 (...) @tensor_typeinfo(<4 x float> %w, i32 4, i32 0, i32 0)
  %r = call <4 x float> (i32, ...) @tensor_tovector(i32 %t)
  %n = load i32, ptr %never.set
  call void @number(i32 %n)
  ret <4 x float> %r
}

; CHECK: attributes #0 = { noinline nounwind optnone }
; CHECK: attributes #1 = { noinline nounwind }
declare void @use(ptr)
declare void @number(i32)
declare i32 @tensor_typeinfo(...)
declare <4 x float> @tensor_matmul(i32, ...)
declare <4 x float> @tensor_tovector(i32, ...)

attributes #0 = { noinline nounwind optnone }
