"""Turns a checked syntax tree into TLX IR: LLVM IR with tensor intrinsics, which the lowering compiles.

Each class of instruction has a rule, in a table of its file whose name ends in `RULES`; a new file is found by itself.

    kernel          a kernel's two functions, of one work-group and of all of them; parameters, launch
    emitter         the state while a kernel is written; regions, one instruction after the other

    values          what a name is: number, memref, group, matrix; integer intervals
    numbers         constants, splats, selection, rounding to narrow floats
    addresses       offsets and addresses of elements; loads and stores of vectors under masks
    masks           which work-items are active; blocks that run where a condition holds

    arithmetic      operators, comparisons, functions, constants and casts of scalars
    memory          loads and stores of elements, views, local memory
    atomics         atomic loads, stores and updates
    subgroups       where a work-item stands; broadcasts, scans and reductions
    control         conditions, loops, parallel regions, barriers; divergence analysis
    blas            BLAS instructions of collective regions
    matrices        cooperative matrices
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
        threads: Whether the function that runs all groups spreads them over OpenMP's threads.
        triple: Target triple of the module, empty for none.
    """

    typed_pointers: bool = False
    threads: Threads = "none"
    triple: str = ""


def emit_program(program: Program, options: EmitOptions | None = None, name: str = "kernel.ll") -> Module:
    """Write a program.

    Args:
        program: Functions that the checker has nothing to say against.
        options: How to write it.
        name: What the module is called in messages.
    """
    from tlx.frontends.tensor_language.emit.kernel import emit_kernel  # not above: its files import this package
    from tlx.ir.module import Module, Raw

    options = options or EmitOptions()
    head = f'target triple = "{options.triple}"' if options.triple else ""
    module = Module(Source(name, ""), [Raw(head)], options.typed_pointers)
    for function in program.functions:
        emit_kernel(module, function, threads=options.threads == "openmp")
    module.items.append(Raw('\n\nattributes #0 = { nounwind "tlx-features"="target" }\n'))
    return module
