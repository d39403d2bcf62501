"""The Python API: compile a text, call it on numpy arrays, handle errors, inspect the stages, evaluate."""

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

print("# Compile and call. A module's functions are its attributes; arrays are passed without copying.")
module = tlx.compile(GEMM)
c = np.zeros((4, 2), np.float32)
module.gemm(x, y, c)
print(c)

print("\n# Wrong arguments are errors: machine code trusts its arguments, so they are checked before the call.")
wrong: list[tuple[Any, ...]] = [(x.astype(np.float32), y, c), (x[:3], y, c), (x, y.T, c), (x, y)]
for arguments in wrong:
    try:
        module.gemm(*arguments)
    except ArgumentError as error:
        print(error)

print("\n# Errors in a program point at the source.")
try:
    tlx.compile(GEMM.replace("<8 x float>", "<9 x float>"))
except TlxError as error:
    print(error)

print("\n# Remarks report decisions; any stage's output can be inspected.")
remarks = Remarks()
tiled = lower(tlx.parse(GEMM, "gemm.ll"), "avx2", options=Options(stop_after="to-tiles", remarks=remarks))
print(*(remark.message.partition(",")[0] for remark in remarks), sep="\n")
print(*(function.name for function in tiled.functions), sep="\n")

print("\n# The evaluator runs any stage in numpy, without machine code.")
for stage in (tlx.parse(GEMM), tiled):
    c = np.zeros((4, 2), np.float32)
    Machine(stage).call("gemm", x, y, c)
    print(c.ravel())
