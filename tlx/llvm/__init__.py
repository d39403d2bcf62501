"""LLVM in a process of its own: what it accepts, the code that it makes, and that code in this process.

process    a running LLVM that is asked through pipes
service    the script that answers there
judge      LLVM's verdict on a text or a module, with the user's file, line and column
upgrade    what older LLVMs wrote, respelled for today's
codegen    optimised IR, bitcode, assembly and object files
loader     an object file in this process
openmp     the OpenMP library that compiled code runs threads with
triples    target triples
subtarget  names of CPUs and features
"""

from __future__ import annotations

from typing import Final, Literal

OutputKind = Literal["ll", "bc", "asm", "obj"]
"""What code generation writes: LLVM IR, bitcode, assembly, or an object file."""
OUTPUT_KINDS: Final[tuple[OutputKind, ...]] = ("ll", "bc", "asm", "obj")
