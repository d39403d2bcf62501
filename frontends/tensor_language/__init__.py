"""The tensor language: kernels on memrefs, groups and cooperative matrices, turned into TLX IR.

    func @scale(%alpha: f32, %A: memref<f32x?x?>) {
        %zero = constant 0.0 : f32
        axpby %alpha, %A, %zero, %A
    }

    from tlx import tensor_language as tl

    tl.parse(text)          text -> syntax tree
    tl.check_program(tree)  raises ProgramError with all that is wrong
    tl.translate(text)      text -> TLX IR
    tl.compile(text)        text -> functions that take numpy arrays
    tl.kernel("scale", alpha="f32", A="memref<f32x?x?>")     a kernel written in Python

There are two versions of the language, and kernels written in Python; one syntax tree stands behind all of them:

    version 2 -- parser ------------+                       +-- emit --> TLX IR --> functions that take arrays
    version 1 -- v1 ----------------+--> ast -- check --> --+-- header --> C
    Python ----- builder -----------+                       +-- printer --> version 2

The files, in that order:

    lexer                   text to tokens, of both versions
    cursor                  a place in the tokens, and the steps that every production takes from it
    parser                  version 2: its whole grammar; programs and functions
    parser_types, parser_attributes, parser_operands      what instructions are made of
    parser_collective, parser_mixed, parser_spmd          the instructions, by where they may stand
    parser_regions          regions, and how to go on behind an error
    parser_hints            what a text that does not parse may have meant
    v1                      version 1: grammar, tree, and what becomes of it in version 2
    builder                 kernels written in Python; `builder_*` have the methods, sorted as the instructions are;
                            `builder_reference` writes their reference page
    annotations             what the annotations of the syntax tree and of the builder make legal
    types, view_types       the types, and the rules about them
    attributes              which attributes there are
    ast                     the syntax tree
    printer                 the tree as text; `printer_*` have instructions and attributes
    check                   the rules of the language
    errors, wording         many errors in one run, and the words in them
    rules                   how `check`, `emit` and `v1` find what to do with an instruction
    work_groups, uses       sizes of work-groups; what a kernel does with its parameters
    signature               the C parameters that a kernel's parameters become
    emit                    TLX IR
    header                  a header for C and C++
    runtime                 compiling into this process; `arguments` and `scalars` check what kernels are called with
    outputs                 what `tlx translate` writes
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, Literal

from tlx.openmp import THREADS
from tlx.openmp import Threads as Threads

if TYPE_CHECKING:
    from tlx.frontends.tensor_language.ast.base import Program
    from tlx.frontends.tensor_language.builder import Kernel as Kernel
    from tlx.frontends.tensor_language.builder import kernel as kernel
    from tlx.frontends.tensor_language.builder import program as program
    from tlx.frontends.tensor_language.builder import text as text
    from tlx.frontends.tensor_language.errors import ProgramError as ProgramError
    from tlx.frontends.tensor_language.runtime import CompiledKernels
    from tlx.ir.module import Module
    from tlx.pipeline import Options
    from tlx.target import Target

Standard = Literal["v1", "v2"]

LANGUAGE: Final = "tl"  # what `-x` calls it
TITLE: Final = "the tensor language"
STANDARDS: Final = ("v1", "v2")  # the last one is the default
SUFFIXES: Final = (".tl", ".ir")  # of files that TRANSLATE reads
OPENINGS: Final = ("func",)  # words that a text begins with
_LAZY: Final = {
    "Kernel": "builder",
    "kernel": "builder",
    "program": "builder",
    "text": "builder",
    "ProgramError": "errors",
}


def parse(text: str, filename: str = "<string>", *, std: Standard = "v2") -> Program:
    """The syntax tree of a text.

    Args:
        text: The text.
        filename: What errors call it.
        std: Version of the language.

    Raises:
        ProgramError: The text does not follow the grammar; it has every error that was found.
    """
    from tlx.diagnostics import Source, UsageError

    if std not in ("v1", "v2"):
        raise UsageError(f"unknown version '{std}' of the language; known are v1, v2")
    parser = import_module(f"{__name__}.v1.parser" if std == "v1" else f"{__name__}.parser")
    return parser.parse(Source(filename, text))


def check_program(program: Program) -> None:
    """Check a syntax tree against the rules of the language.

    Raises:
        ProgramError: It breaks some; it has every error that was found.
    """
    from tlx.frontends.tensor_language.check import check_program as check

    check(program)


def translate(
    text: str,
    filename: str = "<string>",
    *,
    std: Standard = "v2",
    typed_pointers: bool = False,
    threads: Threads = "none",
) -> Module:
    """The TLX IR of a text.

    Args:
        text: The text.
        filename: What errors call it.
        std: Version of the language.
        typed_pointers: Write `float*` for LLVM 14, in place of `ptr`.
        threads: What runs work-groups side by side.

    Raises:
        ProgramError: The text is wrong; it has every error that was found.
    """
    program = parse(text, filename, std=std)
    return emitted(program, typed_pointers=typed_pointers, threads=threads, name=filename)


def emitted(
    program: Program, *, typed_pointers: bool = False, threads: Threads = "none", name: str = "<program>"
) -> Module:
    """The TLX IR of a syntax tree, which is checked first; see `translate`."""
    from tlx.diagnostics import UsageError
    from tlx.frontends.tensor_language.emit import EmitOptions, emit_program
    from tlx.frontends.tensor_language.emit.divergence import warn_of_barriers

    if threads not in THREADS:
        raise UsageError(f"unknown threads '{threads}'; known are {', '.join(THREADS)}")
    check_program(program)
    for function in program.functions:
        warn_of_barriers(function)
    return emit_program(program, EmitOptions(typed_pointers=typed_pointers, threads=threads), f"{name} (translated)")


def TRANSLATE(  # noqa: N802 (the name front ends are found by)
    text: str, filename: str, threads: Threads, std: Standard = "v2"
) -> Module:
    """The TLX IR of a text in one of the `STANDARDS`."""
    return translate(text, filename, std=std, threads=threads)


def compile(  # noqa: A001 (named as tlx.compile)
    source: str | os.PathLike[str] | Program | Kernel,
    target: Target | str = "native",
    *,
    std: Standard = "v2",
    threads: Threads = "none",
    opt_level: int = 2,
    options: Options | None = None,
) -> CompiledKernels:
    """Compile kernels; the result has a function for each, which takes numpy arrays.

    Args:
        source: A text, the path of a file, a syntax tree, or a kernel written in Python.
        target: The machine to aim at, which must be this one; a target or its name.
        std: Version of the language that a text is written in.
        threads: What runs work-groups side by side.
        opt_level: LLVM's optimisation level, 0 to 3.
        options: How to lower.

    Raises:
        TlxError: The source is wrong, or cannot be lowered.
    """
    from tlx.frontends.tensor_language.runtime import compile_source

    return compile_source(source, target, std=std, threads=threads, opt_level=opt_level, options=options)


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
