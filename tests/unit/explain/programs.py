"""Programs for tests of reports, and the reports."""

from __future__ import annotations

from tlx.explain.collect import Report, collect
from tlx.explain.page import MachineCode, page
from tlx.lower.options import Options


def spelled(text: str) -> str:
    """A program with its layouts and paddings written out."""
    for rank in (1, 2, 3):
        order = ", ".join(f"i32 {axis}" for axis in range(rank))
        text = text.replace(f"ZEROS{rank}", f"<{rank} x i32> zeroinitializer")
        text = text.replace(f"ROWS{rank}", f"<{rank} x i32> <{order}>")
    return text


LAYER = spelled("""\
define void @layer(ptr noalias %x, ptr noalias %w, ptr noalias %bias, ptr noalias %y) {
  %a = call token @llvm.tensor.load(ptr elementtype(float) %x, <2 x i32> <i32 48, i32 64>, ROWS2,
      ZEROS2, ZEROS2)
  %b = call token @llvm.tensor.load(ptr elementtype(float) %w, <2 x i32> <i32 64, i32 32>, ROWS2, ZEROS2, ZEROS2)
  %product = call <1536 x float> @llvm.tensor.matmul(token %a, token %b)
  %row = call token @llvm.tensor.load(ptr elementtype(float) %bias, <1 x i32> <i32 32>, ZEROS1, ZEROS1, ZEROS1)
  %rows = call <1536 x float> @llvm.tensor.broadcast(token %row, <2 x i32> <i32 48, i32 32>, <1 x i32> <i32 1>)
  %sum = fadd <1536 x float> %product, %rows
  store <1536 x float> %sum, ptr %y
  ret void
}
""")
A, B, PRODUCT, ROW, ROWS, SUM, STORE = 2, 4, 5, 6, 7, 8, 9  # lines of its instructions

SOFTMAX = spelled("""\
define void @softmax(ptr noalias %x, ptr noalias %y) {
  %a = call token @llvm.tensor.load(ptr elementtype(float) %x, <2 x i32> <i32 64, i32 300>, ROWS2, ZEROS2, ZEROS2)
  %v = call <19200 x float> @llvm.tensor.tovector(token %a)
  %max = call <64 x float> @llvm.tensor.reduce.max(token %a, <2 x i32> <i32 1, i32 300>, <2 x i32> <i32 1, i32 1>)
  %m = call token @llvm.tensor.typeinfo(<64 x float> %max, <2 x i32> <i32 64, i32 1>, ROWS2, ZEROS2)
  %maxima = call <19200 x float> @llvm.tensor.broadcast(token %m, <2 x i32> <i32 64, i32 300>, ROWS2)
  %d = fsub <19200 x float> %v, %maxima
  %t = call token @llvm.tensor.typeinfo(<19200 x float> %d, <2 x i32> <i32 64, i32 300>, ROWS2, ZEROS2)
  %exp = call <19200 x float> @llvm.tensor.exp(token %t)
  %e = call token @llvm.tensor.typeinfo(<19200 x float> %exp, <2 x i32> <i32 64, i32 300>, ROWS2, ZEROS2)
  %total = call <64 x float> @llvm.tensor.reduce.add(token %e, <2 x i32> <i32 1, i32 300>, <2 x i32> <i32 1, i32 1>)
  %s = call token @llvm.tensor.typeinfo(<64 x float> %total, <2 x i32> <i32 64, i32 1>, ROWS2, ZEROS2)
  %totals = call <19200 x float> @llvm.tensor.broadcast(token %s, <2 x i32> <i32 64, i32 300>, ROWS2)
  %quotient = fdiv <19200 x float> %exp, %totals
  store <19200 x float> %quotient, ptr %y
  ret void
}
""")
MAX, DIFFERENCE, EXP, TOTAL, QUOTIENT = 4, 7, 9, 11, 14

BATCH = spelled("""\
define void @batch(ptr noalias %x, ptr noalias %y, ptr noalias %c) {
  %a = call token @llvm.tensor.load(ptr elementtype(float) %x, <3 x i32> <i32 5, i32 2, i32 64>, ROWS3, ZEROS3, ZEROS3)
  %b = call token @llvm.tensor.load(ptr elementtype(float) %y, <3 x i32> <i32 5, i32 64, i32 8>, ROWS3, ZEROS3, ZEROS3)
  %p = call <80 x float> @llvm.tensor.matmul(token %a, token %b)
  store <80 x float> %p, ptr %c
  ret void
}
""")

TARGET = "avx2"


def report_of(text: str, target: str = TARGET, name: str = "program.ll") -> Report:
    return collect(text, name, target, Options())


def page_of(text: str, name: str = "program.ll") -> str:
    return page(report_of(text, TARGET, name), MachineCode({}, {}))
