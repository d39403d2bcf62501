"""Products for the tests of tuning."""

from __future__ import annotations

from tlx.lower.knobs import KnobQuery
from tlx.target.lookup import find_target
from tlx.tuning.database import EntryKey

AVX512 = find_target("avx512")


CPU = "Some Processor"


SQUARE = KnobQuery("matmul 64x64x64 float", "avx512", AVX512.features)


KEY = EntryKey(SQUARE.text, SQUARE.target, SQUARE.features, CPU)


PROGRAM = """
define void @f(ptr noalias %x, ptr noalias %y) {
  %t = call token @llvm.tensor.load(ptr elementtype(float) %x, <2 x i32> <i32 64, i32 64>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %v = call <4096 x float> @llvm.tensor.matmul(token %t, token %t)
  OPERATION
  store <4096 x float> %w, ptr %y
  ret void
}
"""  # noqa: E501


PLAIN = PROGRAM.replace("  OPERATION\n", "").replace("%w", "%v")


FUSED = PROGRAM.replace("OPERATION", "%w = fmul <4096 x float> %v, %v")
