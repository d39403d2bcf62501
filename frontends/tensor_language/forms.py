"""What `tlx translate` writes of a text: one function a form."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import PurePath
from typing import TYPE_CHECKING, Final, Literal

from tlx.frontends import tensor_language
from tlx.frontends.tensor_language.header import header, signatures
from tlx.frontends.tensor_language.printer import print_program

if TYPE_CHECKING:
    from tlx.frontends.tensor_language.ast.base import Program

Form = Literal["ll", "ast", "signature", "header", "v2"]


def written(
    text: str,
    filename: str,
    form: Form,
    *,
    std: tensor_language.Standard,
    typed_pointers: bool = False,
    threads: tensor_language.Threads = "none",
) -> str:
    """A text in another form.

    Args:
        text: The text.
        filename: What errors and a header call it.
        form: `ll` for TLX IR; `ast` for the syntax tree as version 2 spells it, unchecked; `v2` for the same of a
            program that is right; `signature` and `header` for what C needs to know.
        std: Version of the language that the text is written in.
        typed_pointers: See `translate`.
        threads: See `translate`.

    Raises:
        ProgramError: The text is wrong; it has every error that was found.
    """
    program = tensor_language.parse(text, filename, std=std)
    if form == "ll":
        module = tensor_language.emitted(program, typed_pointers=typed_pointers, threads=threads, name=filename)
        return str(module).strip("\n") + "\n"
    if form != "ast":
        tensor_language.check_program(program)
    return _FORMS[form](program, filename)


def _text(program: Program, _filename: str) -> str:
    return print_program(program)


def _signatures(program: Program, _filename: str) -> str:
    return signatures(program)


def _header(program: Program, filename: str) -> str:
    return header(program, PurePath(filename).name)


_FORMS: Final[dict[str, Callable[[Program, str], str]]] = {
    "ast": _text,
    "v2": _text,
    "signature": _signatures,
    "header": _header,
}
