"""The tensor language: kernels on memrefs, groups and cooperative matrices, turned into TLX IR.

    func @scale(%alpha: f32, %A: memref<f32x?x?>) {
        %zero = constant 0.0 : f32
        axpby %alpha, %A, %zero, %A
    }

    from tlx import tensor_language as tl

    tl.parse(text)          text -> syntax tree
    tl.check_program(tree)  raises ProgramError with all errors
    tl.translate(text)      text -> TLX IR
    tl.compile(text)        text -> functions that take numpy arrays
    tl.kernel("scale", alpha="f32", A="memref<f32x?x?>")     a kernel written in Python

There are two versions of the language, and kernels written in Python; all of them become the same syntax tree:

    version 2 -- syntax.parser -----+                       +-- emit --> TLX IR --> functions that take arrays
    version 1 -- v1 ----------------+--> tree - check --> --+-- signature ----> C header
    Python ----- builder -----------+                       +-- syntax.printer --> version 2

    operations      the table: each operation of the language once, with its rules
    syntax          lexer, syntax tree, parser and printer of version 2
    v1              version 1: its grammar, and its conversion to version 2
    builder         kernels written in Python
    types           the types, and the rules about them
    work_items      sizes of subgroups and work-groups, how values differ between work-items
    analysis        which parameters a kernel writes, which values may differ, which writes are the first
    check           checks programs by the rules
    emit            TLX IR
    signature       C signatures and headers
    runtime         compiling into this process; numpy arguments
    errors          all errors of a text in one exception; words of messages, spelling hints
    translation     text to syntax tree to TLX IR: `parse`, `check_program`, `translate`
    examples        programs for tests and fuzzers to start from
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from tlx.frontends.tensor_language.translation import Standard as Standard
from tlx.frontends.tensor_language.translation import check_program as check_program
from tlx.frontends.tensor_language.translation import emitted as emitted
from tlx.frontends.tensor_language.translation import parse as parse
from tlx.frontends.tensor_language.translation import translate as translate
from tlx.llvm.openmp import Threads as Threads

if TYPE_CHECKING:
    from tlx.frontends.tensor_language.builder.kernel import Kernel as Kernel
    from tlx.frontends.tensor_language.builder.kernel import kernel as kernel
    from tlx.frontends.tensor_language.builder.kernel import program as program
    from tlx.frontends.tensor_language.builder.kernel import text as text
    from tlx.frontends.tensor_language.errors import ProgramError as ProgramError
    from tlx.frontends.tensor_language.runtime.kernels import compile as compile  # noqa: A004 (named as tlx.compile)
    from tlx.ir.module import Module
    from tlx.target.grid_unit import GridUnit

LANGUAGE: Final = "tl"  # its name for `-x`
TITLE: Final = "the tensor language"
STANDARDS: Final = ("v1", "v2")  # the last one is the default
SUFFIXES: Final = (".tl", ".ir")  # of files that TRANSLATE reads
OPENINGS: Final = ("func",)  # words that a text can begin with
_LAZY: Final = {
    "Kernel": "builder.kernel",
    "kernel": "builder.kernel",
    "program": "builder.kernel",
    "text": "builder.kernel",
    "compile": "runtime.kernels",
    "ProgramError": "errors",
}


def TRANSLATE(  # noqa: N802 (front ends are discovered by this name)
    text: str, filename: str, threads: Threads | GridUnit, std: Standard = "v2"
) -> Module:
    """The TLX IR of a text in one of the `STANDARDS`."""
    return translate(text, filename, std=std, threads=threads)


def __getattr__(name: str) -> Any:
    """Import a public name from the module that defines it.

    Raises:
        AttributeError: There is no such name.
    """
    if name not in _LAZY:
        message = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(message)
    value = getattr(import_module(f"{__name__}.{_LAZY[name]}"), name)
    globals()[name] = value
    return value
