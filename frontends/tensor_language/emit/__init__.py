"""Turns a checked syntax tree into TLX IR: LLVM IR with tensor intrinsics, which the lowering compiles.

Each class of instruction has a rule, a public function `(Emitter, instruction) -> None` that is found by the annotation
of its second parameter (`operations.core.rules_of`).

    kernel          the two functions of a kernel: one runs a work-group, one runs all of them; parameters, launch
    emitter         the values of names; the state while a kernel is written; the walk over regions

    numbers         constants, splats, selection, rounding to narrow floats
    masks           active work-items; blocks that run under a condition
    memory          addresses, loads and stores of elements, views, local memory
    first_writes    BLAS outputs that need not be read, local memory that has to be zeroed

    arithmetic      operators, comparisons, functions, constants and casts of scalars
    atomics         atomic loads, stores and updates
    subgroups       ids of work-items; broadcasts, scans and reductions
    sequential      conditions and loops: branches, or masks where work-items differ
    parallel        parallel regions, `foreach` and `foreach_tile`; loop fission at barriers
    blas            BLAS instructions of collective regions
    matrices        cooperative matrices: arithmetic, and the components of work-items
    matrix_memory   loads, stores, atomic updates and prefetches of cooperative matrices
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tlx.diagnostics import Source
from tlx.llvm.openmp import Threads

if TYPE_CHECKING:
    from tlx.frontends.tensor_language.syntax.nodes import Program
    from tlx.ir.module import Module


@dataclass(frozen=True, slots=True)
class EmitOptions:
    """How to write a program.

    Attributes:
        typed_pointers: Spell pointers as `T*`, for LLVM before 15.
        threads: Whether the function that runs all groups distributes them over OpenMP's threads.
        triple: Target triple of the module, empty for none.
    """

    typed_pointers: bool = False
    threads: Threads = "none"
    triple: str = ""


def emit_program(program: Program, options: EmitOptions | None = None, name: str = "kernel.ll") -> Module:
    """Write a program.

    Args:
        program: A checked program.
        options: How to write it.
        name: The name of the module in messages.
    """
    from tlx.frontends.tensor_language.emit.kernel import emit_kernel  # here, because its files import this package
    from tlx.ir.module import Module, Raw

    options = options or EmitOptions()
    head = f'target triple = "{options.triple}"' if options.triple else ""
    module = Module(Source(name, ""), [Raw(head)], options.typed_pointers)
    for function in program.functions:
        emit_kernel(module, function, threads=options.threads == "openmp")
    module.items.append(Raw('\n\nattributes #0 = { nounwind "tlx-features"="target" }\n'))
    return module
