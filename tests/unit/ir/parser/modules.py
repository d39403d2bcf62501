"""Modules that hold every form of instruction and constant, and what LLVM reads in a text."""

# llvmlite has no types.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

from pathlib import Path
from typing import Final

import llvmlite.binding as llvm

from tlx.ir.module import Module

Shape = dict[str, list[list[str]]]

_FOLDER: Final = Path(__file__).parents[3] / "lit" / "ir" / "Inputs"
OPAQUE: Final = (_FOLDER / "opaque.ll").read_text()
TYPED: Final = (_FOLDER / "typed.ll").read_text()


def read_by_llvm(text: str) -> Shape:
    """Opcodes of the instructions, by function and block, as LLVM reads them; declarations are left out.

    Raises:
        RuntimeError: LLVM does not read the text.
    """
    with llvm.create_context() as context, llvm.parse_assembly(text, context) as module:
        return {
            str(f.name): [[str(i.opcode) for i in block.instructions] for block in f.blocks]
            for f in module.functions
            if not f.is_declaration
        }


def shape(module: Module) -> Shape:
    """The same of what we read; LLVM turns calls of `llvm.dbg.value` into records."""
    return {
        f.name.strip('"'): [[i.opcode for i in block.instructions if not i.is_debug] for block in f.blocks]
        for f in module.functions
    }
