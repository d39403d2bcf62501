"""Turns a checked syntax tree into TLX IR."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from tlx.diagnostics import Source

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
    threads: Literal["none", "openmp"] = "none"
    triple: str = ""


def emit_program(program: Program, options: EmitOptions | None = None, name: str = "kernel.ll") -> Module:
    """Write a program.

    Args:
        program: Functions that the checker has nothing to say against.
        options: How to write it.
        name: What the module is called in messages.
    """
    from tlx.frontends.tensor_language.emit.kernel import emit_kernel
    from tlx.ir.module import Module, Raw

    options = options or EmitOptions()
    head = f'target triple = "{options.triple}"' if options.triple else ""
    module = Module(Source(name, ""), [Raw(head)], options.typed_pointers)
    for function in program.functions:
        emit_kernel(module, function, threads=options.threads == "openmp")
    module.items.append(Raw('\n\nattributes #0 = { nounwind "tlx-features"="target" }\n'))
    return module
