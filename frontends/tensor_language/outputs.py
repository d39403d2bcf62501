"""What `tlx translate --emit=` writes of a text: one function an output."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import PurePath
from typing import TYPE_CHECKING, Final, Literal

from tlx.frontends.tensor_language.calling.header import header, signatures
from tlx.frontends.tensor_language.syntax.printer import print_program
from tlx.frontends.tensor_language.translation import Standard, check_program, emitted, parse
from tlx.llvm.openmp import Threads

if TYPE_CHECKING:
    from tlx.frontends.tensor_language.syntax.nodes import Program

Output = Literal["ll", "ast", "signature", "header", "v2"]


def written(
    text: str,
    filename: str,
    output: Output,
    *,
    std: Standard,
    typed_pointers: bool = False,
    threads: Threads = "none",
) -> str:
    """What becomes of a text.

    Args:
        text: The text.
        filename: What errors and a header call it.
        output: `ll` for TLX IR; `ast` for the syntax tree as version 2 spells it, unchecked; `v2` for the same of a
            program that is right; `signature` and `header` for what C needs to know.
        std: Version of the language that the text is written in.
        typed_pointers: See `translate`.
        threads: See `translate`.

    Raises:
        ProgramError: The text is wrong; it has every error that was found.
    """
    program = parse(text, filename, std=std)
    if output == "ll":
        module = emitted(program, typed_pointers=typed_pointers, threads=threads, name=filename)
        return str(module).strip("\n") + "\n"
    if output != "ast":
        check_program(program)
    return _OUTPUTS[output](program, filename)


def _text(program: Program, _filename: str) -> str:
    return print_program(program)


def _signatures(program: Program, _filename: str) -> str:
    return signatures(program)


def _header(program: Program, filename: str) -> str:
    return header(program, PurePath(filename).name)


_OUTPUTS: Final[dict[str, Callable[[Program, str], str]]] = {
    "ast": _text,
    "v2": _text,
    "signature": _signatures,
    "header": _header,
}
