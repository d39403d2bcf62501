"""Texts of the first version, and what they are in the second."""

from __future__ import annotations

from textwrap import dedent
from typing import Final

import pytest

from tlx.diagnostics import Source
from tlx.frontends.tensor_language.errors import ProgramError
from tlx.frontends.tensor_language.syntax import parser
from tlx.frontends.tensor_language.syntax.nodes import Program
from tlx.frontends.tensor_language.syntax.printer import print_program
from tlx.frontends.tensor_language.v1 import parse

PARAMETERS: Final = (
    "%a: f32, %b: f32, %d: f64, %i: i32, %j: i32, %n: index, %m: index, %p: i1, %q: i1, "
    "%A: memref<f32x16x8>, %B: memref<f32x8x4>, %C: memref<f32x16x4>, %D: memref<f32x?x?x?>, "
    "%v: memref<f32x8>, %w: memref<f32x16>, %s: memref<f32>, %G: group<memref<f32x16x8>>"
)
"""Parameters that the bodies of the tests read."""


def read(text: str) -> Program:
    """A whole text as a syntax tree."""
    return parse(Source("v1.tl", text))


def converted(text: str) -> str:
    """A whole text in version 2."""
    return print_program(read(text))


def body(text: str, parameters: str = PARAMETERS) -> str:
    """The instructions of a function's body in version 2, one a line, as deep as they stand in the body."""
    return _inner(converted(f"func @f({parameters}) {{\n{text}\n}}"))


def v2(*lines: str) -> str:
    """Instructions of version 2 in the form that `body` has."""
    text = "\n".join(["func @f() {", *lines, "}"])
    return _inner(print_program(parser.parse(Source("v2.tl", text))))


def _inner(printed: str) -> str:
    lines = printed.splitlines()
    start = next(n for n, line in enumerate(lines) if line.endswith("{"))
    return dedent("\n".join(lines[start + 1 : -1]))


def whole_errors(text: str) -> list[str]:
    """The errors of a whole text, without the lines of the text itself."""
    with pytest.raises(ProgramError) as raised:
        read(text)
    return [line for line in raised.value.render().splitlines() if line.startswith("v1.tl:")]


def errors(text: str, parameters: str = PARAMETERS) -> list[str]:
    """`line:column: message` of what is wrong with a function's body, its first line being 1."""
    shown: list[str] = []
    for line in whole_errors(f"func @f({parameters}) {{\n{text}\n}}"):
        _, row, column, rest = line.split(":", 3)
        shown.append(f"{int(row) - 1}:{column}:{rest.removeprefix(' error:')}")
    return shown
