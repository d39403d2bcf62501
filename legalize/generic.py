"""`generic`: plain LLVM vectors and multiply-adds that any backend compiles.

Kernels carry no target features. 128-bit vectors are native nearly everywhere; `llvm.fmuladd` is one instruction where
the machine has it and two where it has not, never a library call.
"""

from __future__ import annotations

from typing import Final

from tlx.target import Target

TARGET: Final = Target(
    name="generic",
    title="plain LLVM vectors for any backend",
    vector_bytes=16,
    registers=16,
)
