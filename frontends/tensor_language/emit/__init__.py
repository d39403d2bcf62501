"""Turns a checked syntax tree into TLX IR: LLVM IR with tensor intrinsics, which the lowering compiles.

Each class of instruction has a rule, in the `RULES` of one of these files; a new file is found by itself. They are, in
the order in which a program passes through them:

    kernel                  a kernel's two functions: of one work-group, of all of them
      launch                the loops or threads that run all work-groups
      parameters            LLVM's parameters, and what the kernel's names are at its entry
      divergence            which names differ between the work-items of a subgroup: before anything is written
    emitter                 the state while a kernel is written; regions, one instruction after the other

    values                  what a name is: number, memref, group, matrix; LLVM's types for them
      numbers               constants, splats, selection, rounding to narrow floats
      intervals             between which numbers an integer lies
      addresses             offsets and addresses of elements
      masks                 which work-items are active, and what is done for each of them
      masked_access         vectors in memory under masks
      branches              blocks that run where a condition holds

    Instructions on scalars and memrefs:
      builtins              where a work-item stands
      arithmetic            operators and comparisons
        complex_numbers     those of complex numbers
      conversions           constants and casts
      math_functions        `exp`, `sin` and the like
      views                 `size`, `associated`, `subview`, `expand`, `fuse`
      access                `load` and `store` of elements, members of groups
      atomic_lanes          rules of atomic access, by all active work-items
        atomics             one scalar's load, store and update
      local_memory          `alloca`

    Control flow:
      divergent_control     rules of `if` and `for`; masks where work-items go different ways
        divergent_loops     iterations that all work-items run before those under masks
      uniform_control       branches and phis where all work-items go the same way
      unroll                the attribute that asks LLVM to unroll a loop

    SPMD regions:
      parallel              rule of `parallel`
      barriers              its body cut at barriers
        slots               the values that are needed behind a barrier
      foreach               rules of `foreach` and `foreach_tile`
      subgroup_loop         code that all subgroups run, or one of them
      subgroup_operations   broadcasts, scans and reductions

    BLAS instructions in collective regions:
      blas                  the rules, which choose a way
      blas_terms            what an instruction multiplies and sums
      blas_epilogue         `alpha * value + beta * output`
        blas_first_writes   where the output need not be read, and where local memory is made zero
      blas_unit_strides     code twice, for first strides that turn out to be 1 and for others
      blas_tensors          first way: one expression of tensors of known shape
      blas_packed           second way: packed copies of tiles
      blas_dynamic          third way: tensors of shapes known only when the kernel runs
      blas_loops            last way: loops over the elements of the output
        blas_scan           those of `cumsum`
      blas_elements         elements of memrefs, one or several neighbours
      blas_atomic           atomic updates of the output

    Cooperative matrices:
      matrices              matrices as flattened vectors and as tensors
      matrix_arithmetic     rules of what works on scalars and matrices alike
      matrix_product        product, scaling, construction
      matrix_atomics        rules of load, store and update, atomic or not
        matrix_memory       those that are not atomic, and prefetches
      matrix_buffer         matrices on the stack, where single entries can be reached
      matrix_layout         the entries that each work-item holds: `apply`, `extract`, `insert`
      matrix_reduce         sums, maxima and minima of rows or columns
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tlx.diagnostics import Source
from tlx.openmp import Threads

if TYPE_CHECKING:
    from tlx.frontends.tensor_language.ast.base import Program
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
