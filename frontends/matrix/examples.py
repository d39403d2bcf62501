"""Programs with LLVM's matrices as clang writes them, for tests and fuzzers to start from."""

from __future__ import annotations

from typing import Final

_MULTIPLY: Final = """\
define void @multiply(ptr noalias %p, ptr noalias %q, ptr noalias %r) {
  %a = call <6 x float> @llvm.matrix.column.major.load.v6f32.i64(ptr align 4 %p, i64 3, i1 false, i32 2, i32 3)
  %b = load <12 x float>, ptr %q, align 4
  %c = tail call contract <8 x float> @llvm.matrix.multiply.v8f32.v6f32.v12f32(<6 x float> %a, <12 x float> %b,
      i32 2, i32 3, i32 4)
  call void @llvm.matrix.column.major.store.v8f32.i64(<8 x float> %c, ptr align 4 %r, i64 5, i1 false, i32 2, i32 4)
  ret void
}
declare <6 x float> @llvm.matrix.column.major.load.v6f32.i64(ptr, i64, i1, i32, i32)
declare <8 x float> @llvm.matrix.multiply.v8f32.v6f32.v12f32(<6 x float>, <12 x float>, i32, i32, i32)
declare void @llvm.matrix.column.major.store.v8f32.i64(<8 x float>, ptr, i64, i1, i32, i32)
"""
_BESIDE_TENSORS: Final = """\
define void @beside(ptr %p, ptr %q, ptr %r, i64 %n) {
  %a = load <16 x float>, ptr %p, align 4
  %b = call <16 x float> @llvm.matrix.column.major.load.v16f32.i64(ptr %q, i64 %n, i1 false, i32 4, i32 4)
  %c = call <16 x float> @llvm.matrix.multiply.v16f32.v16f32.v16f32(<16 x float> %a, <16 x float> %b, i32 4,
      i32 4, i32 4)
  %d = call <16 x float> @llvm.matrix.transpose.v16f32(<16 x float> %c, i32 4, i32 4)
  %t = call token @llvm.tensor.typeinfo(<16 x float> %d, <2 x i32> <i32 4, i32 4>, <2 x i32> <i32 1, i32 0>,
      <2 x i32> zeroinitializer)
  %e = call <16 x float> @llvm.tensor.relu(token %t)
  store <16 x float> %e, ptr %r, align 4
  ret void
}
declare <16 x float> @llvm.matrix.column.major.load.v16f32.i64(ptr, i64, i1, i32, i32)
declare <16 x float> @llvm.matrix.multiply.v16f32.v16f32.v16f32(<16 x float>, <16 x float>, i32, i32, i32)
declare <16 x float> @llvm.matrix.transpose.v16f32(<16 x float>, i32, i32)
"""
EXAMPLES: Final = (_MULTIPLY, _BESIDE_TENSORS)
