"""Text to syntax tree to TLX IR, and the other outputs of `tlx translate`."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING, Literal

from tlx.llvm.openmp import THREADS, Threads

if TYPE_CHECKING:
    from tlx.frontends.tensor_language.syntax.nodes import Program
    from tlx.ir.module import Module
    from tlx.target.grid_unit import GridUnit

Standard = Literal["v1", "v2"]
Output = Literal["ll", "ast", "signature", "header", "v2"]


def parse(text: str, filename: str = "<string>", *, std: Standard = "v2") -> Program:
    """The syntax tree of a text.

    Args:
        text: The text.
        filename: The name of the file in errors.
        std: Version of the language.

    Raises:
        ProgramError: The text does not follow the grammar; the exception has all errors.
    """
    from tlx.diagnostics import Source, UsageError

    if std not in ("v1", "v2"):
        raise UsageError(f"unknown version '{std}' of the language; choose from v1, v2")
    if std == "v1":
        from tlx.frontends.tensor_language.v1 import parse as parse_text
    else:
        from tlx.frontends.tensor_language.syntax.parser import parse as parse_text
    return parse_text(Source(filename, text))


def check_program(program: Program) -> None:
    """Check a syntax tree against the rules of the language.

    Raises:
        ProgramError: It breaks some; the exception has all errors.
    """
    from tlx.frontends.tensor_language.check import check_program as check

    check(program)


def translate(
    text: str,
    filename: str = "<string>",
    *,
    std: Standard = "v2",
    typed_pointers: bool = False,
    threads: Threads | GridUnit = "none",
) -> Module:
    """The TLX IR of a text.

    Args:
        text: The text.
        filename: The name of the file in errors.
        std: Version of the language.
        typed_pointers: Write `float*` instead of `ptr`, for LLVM 14.
        threads: What runs work-groups in parallel: a library, or the blocks of a target's grid.

    Raises:
        ProgramError: The text is wrong; the exception has all errors.
    """
    program = parse(text, filename, std=std)
    return emitted(program, typed_pointers=typed_pointers, threads=threads, name=filename)


def emitted(
    program: Program, *, typed_pointers: bool = False, threads: Threads | GridUnit = "none", name: str = "<program>"
) -> Module:
    """The TLX IR of a syntax tree, which is checked first; see `translate`."""
    from tlx.diagnostics import UsageError
    from tlx.frontends.tensor_language.analysis.divergence import warn_of_barriers
    from tlx.frontends.tensor_language.emit.kernel import emit_program

    if isinstance(threads, str) and threads not in THREADS:
        raise UsageError(f"unknown threads '{threads}'; choose from {', '.join(THREADS)}")
    check_program(program)
    for function in program.functions:
        warn_of_barriers(function)
    return emit_program(program, typed_pointers=typed_pointers, threads=threads, name=f"{name} (translated)")


def written(
    text: str,
    filename: str,
    output: Output,
    *,
    std: Standard,
    typed_pointers: bool = False,
    threads: Threads | GridUnit = "none",
) -> str:
    """The output of `tlx translate --emit=` for a text.

    Args:
        text: The text.
        filename: The name of the file in errors and in a header.
        output: `ll` for TLX IR; `ast` for the syntax tree in version 2, unchecked; `v2` for the same of a checked
            program; `signature` and `header` for the C interface.
        std: Version of the language that the text is written in.
        typed_pointers: See `translate`.
        threads: See `translate`.

    Raises:
        ProgramError: The text is wrong; the exception has all errors.
    """
    from tlx.frontends.tensor_language.signature import header, signatures
    from tlx.frontends.tensor_language.syntax.printer import print_program

    program = parse(text, filename, std=std)
    if output == "ll":
        module = emitted(program, typed_pointers=typed_pointers, threads=threads, name=filename)
        return str(module).strip("\n") + "\n"
    if output != "ast":
        check_program(program)
    match output:
        case "signature":
            return signatures(program)
        case "header":
            return header(program, PurePath(filename).name)
        case _:
            return print_program(program)
