; The right operand of a product must be packed with the group as its last dimension.
;
; RUN: not tlx-lower %s --target=generic 2>&1 | FileCheck %s --implicit-check-not=error:
; RUN: not tlx-lower %s --target=amx 2>&1 | FileCheck %s --implicit-check-not=error:

define void @f(ptr %c, ptr %a, ptr %b) "tlx-stage"="tiles" {
  %acc = call token @llvm.tensor.load(ptr elementtype(i32) %c, <2 x i32> <i32 1, i32 4>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 0>)
  %lhs = call token @llvm.tensor.load(ptr elementtype(i16) %a, <2 x i32> <i32 1, i32 2>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 0>)
  %rhs.packed = call token @llvm.tensor.load(ptr elementtype(i16) %b, <3 x i32> <i32 1, i32 4, i32 2>, <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> <i32 0, i32 0, i32 0>, <3 x i32> <i32 0, i32 0, i32 0>)
; CHECK: permute_invalid.ll:[[#@LINE+1]]:3: error: reshape.permute of this form is not a tile operation
  %rhs.flat = call <8 x i16> @llvm.tensor.reshape.permute(token %rhs.packed, <3 x i32> <i32 0, i32 1, i32 2>, <2 x i32> <i32 2, i32 4>)
  %rhs = call token @llvm.tensor.typeinfo(<8 x i16> %rhs.flat, <2 x i32> <i32 2, i32 4>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
  %r = call <4 x i32> @llvm.tensor.smma(token %acc, token %lhs, token %rhs)
  %out = call token @llvm.tensor.typeinfo(<4 x i32> %r, <2 x i32> <i32 1, i32 4>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
  call void @llvm.tensor.store(ptr %c, token %out, <2 x i32> <i32 0, i32 0>)
  ret void
}
