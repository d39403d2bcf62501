"""Text to syntax tree to TLX IR."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from tlx.llvm.openmp import THREADS, Threads

if TYPE_CHECKING:
    from tlx.frontends.tensor_language.syntax.nodes import Program
    from tlx.ir.module import Module

Standard = Literal["v1", "v2"]


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
    if std == "v1":
        from tlx.frontends.tensor_language.v1.parser import parse as parse_text
    else:
        from tlx.frontends.tensor_language.syntax.parser import parse as parse_text
    return parse_text(Source(filename, text))


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
    from tlx.frontends.tensor_language.emit.control.divergence import warn_of_barriers

    if threads not in THREADS:
        raise UsageError(f"unknown threads '{threads}'; known are {', '.join(THREADS)}")
    check_program(program)
    for function in program.functions:
        warn_of_barriers(function)
    return emit_program(program, EmitOptions(typed_pointers=typed_pointers, threads=threads), f"{name} (translated)")
