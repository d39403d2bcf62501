"""Products that tests of tuning are about."""

from __future__ import annotations

from tlx.knobs import Question
from tlx.target import find
from tlx.tune.database import Key

AVX512 = find("avx512")


CPU = "Some Processor"


SQUARE = Question("matmul 64x64x64 float", "avx512", AVX512.features)


KEY = Key(SQUARE.text, SQUARE.target, SQUARE.features, CPU)


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
