"""LLVM in a separate process: verification, code generation, and loading of the code into this process.

process       client of the LLVM process, which answers requests through pipes
service       the script that runs LLVM there
verification  parses and verifies a text or a module, with errors at the user's file, line and column
codegen       optimised IR, bitcode, assembly and object files; names of CPUs and features
split         parts of a large module, which are compiled at the same time
loader        loads an object file into this process
emulator      links programs of other machines, and calls their functions under an emulator
openmp        the OpenMP library that compiled code uses
triples       target triples
"""

from __future__ import annotations

from typing import Final, Literal

OutputKind = Literal["ll", "bc", "asm", "obj"]
"""What code generation writes: LLVM IR, bitcode, assembly, or an object file."""
OUTPUT_KINDS: Final[tuple[OutputKind, ...]] = ("ll", "bc", "asm", "obj")
