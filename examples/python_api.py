"""The Python API: compile a text, call it on numpy arrays, read what is wrong, look at each stage, evaluate."""

from __future__ import annotations

from typing import Any

import numpy as np
from ml_dtypes import bfloat16

import tlx
from tlx import ArgumentError, Options, Remarks, TlxError
from tlx.evaluate import Machine
from tlx.lower.pipeline import lower

# c = x @ y, 4x2 = 4x3 3x2, bfloat in, float out.
GEMM = """
define void @gemm(ptr noalias %x, ptr noalias %y, ptr noalias %c) {
  %a = call token @llvm.tensor.load(ptr elementtype(bfloat) %x, <2 x i32> <i32 4, i32 3>, <2 x i32> <i32 0, i32 1>,
                                    <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %b = call token @llvm.tensor.load(ptr elementtype(bfloat) %y, <2 x i32> <i32 3, i32 2>, <2 x i32> <i32 0, i32 1>,
                                    <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %p = call <8 x float> @llvm.tensor.matmul(token %a, token %b)
  %t = call token @llvm.tensor.typeinfo(<8 x float> %p, <2 x i32> <i32 4, i32 2>, <2 x i32> <i32 0, i32 1>,
                                        <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}
"""

x = np.arange(12).reshape(4, 3).astype(bfloat16)
y = np.array([[1, 0], [0, 1], [1, 1]], bfloat16)

print("# Compile and call. The functions of a module are its attributes; numpy's memory is used in place.")
module = tlx.compile(GEMM)
c = np.zeros((4, 2), np.float32)
module.gemm(x, y, c)
print(c)

print("\n# A wrong argument is refused, not run: machine code trusts its arguments.")
wrong: list[tuple[Any, ...]] = [(x.astype(np.float32), y, c), (x[:3], y, c), (x, y.T, c), (x, y)]
for arguments in wrong:
    try:
        module.gemm(*arguments)
    except ArgumentError as error:
        print(error)

print("\n# A wrong program has a place.")
try:
    tlx.compile(GEMM.replace("<8 x float>", "<9 x float>"))
except TlxError as error:
    print(error)

print("\n# What was decided, and what is left after a stage.")
remarks = Remarks()
tiled = lower(tlx.parse(GEMM, "gemm.ll"), "avx2", options=Options(stop_after="to-tiles", remarks=remarks))
print(*(remark.message.partition(",")[0] for remark in remarks), sep="\n")
print(*(function.name for function in tiled.functions), sep="\n")

print("\n# The evaluator runs any stage on numpy, no machine code involved.")
for stage in (tlx.parse(GEMM), tiled):
    c = np.zeros((4, 2), np.float32)
    Machine(stage).call("gemm", x, y, c)
    print(c.ravel())
