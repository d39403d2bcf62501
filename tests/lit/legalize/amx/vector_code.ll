; Tiles of other types or shapes are vector code.
;
; RUN: grep -v '^;' %s | tlx-lower - -o - --target=amx | FileCheck %s --implicit-check-not=llvm.tensor.

; CHECK-NOT: x86_amx
; CHECK: dpbf16ps.512
; CHECK-NOT: x86_amx
; CHECK: mul <16 x i32>
; CHECK-NOT: x86_amx
; CHECK-NOT: global_ctors

define void @f(ptr %c, ptr %a, ptr %b) "tlx-stage"="tiles" {
  %acc = call token @llvm.tensor.load(ptr elementtype(float) %c, <2 x i32> <i32 2, i32 16>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 0>)
  %lhs = call token @llvm.tensor.load(ptr elementtype(bfloat) %a, <2 x i32> <i32 2, i32 2>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 0>)
  %rhs.packed = call token @llvm.tensor.load(ptr elementtype(bfloat) %b, <3 x i32> <i32 1, i32 16, i32 2>, <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> <i32 0, i32 0, i32 0>, <3 x i32> <i32 0, i32 0, i32 0>)
  %rhs.flat = call <32 x bfloat> @llvm.tensor.reshape.permute(token %rhs.packed, <3 x i32> <i32 0, i32 2, i32 1>, <2 x i32> <i32 2, i32 16>)
  %rhs = call token @llvm.tensor.typeinfo(<32 x bfloat> %rhs.flat, <2 x i32> <i32 2, i32 16>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
  %r = call <32 x float> @llvm.tensor.smma(token %acc, token %lhs, token %rhs)
  %out = call token @llvm.tensor.typeinfo(<32 x float> %r, <2 x i32> <i32 2, i32 16>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
  call void @llvm.tensor.store(ptr %c, token %out, <2 x i32> <i32 0, i32 0>)
  ret void
}

define void @g(ptr %c, ptr %a, ptr %b) "tlx-stage"="tiles" {
  %acc = call token @llvm.tensor.load(ptr elementtype(i32) %c, <2 x i32> <i32 1, i32 16>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 0>)
  %lhs = call token @llvm.tensor.load(ptr elementtype(i32) %a, <2 x i32> <i32 1, i32 1>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 0>)
  %rhs = call token @llvm.tensor.load(ptr elementtype(i32) %b, <2 x i32> <i32 1, i32 16>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 0>)
  %r = call <16 x i32> @llvm.tensor.smma(token %acc, token %lhs, token %rhs)
  %out = call token @llvm.tensor.typeinfo(<16 x i32> %r, <2 x i32> <i32 1, i32 16>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
  call void @llvm.tensor.store(ptr %c, token %out, <2 x i32> <i32 0, i32 0>)
  ret void
}
