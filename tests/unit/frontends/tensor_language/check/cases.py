"""Kernels that obey a rule and kernels that break it, with the location of the error.

A case is two bodies of the kernel below, one that is accepted and one with exactly one error. Files in `rules` write it

    === name of the rule, in parallel
    body that keeps it
    --- the error's message
    body that breaks it, ⟦and no other⟧

where the marks stand around what the caret must point at, and `in parallel` puts both bodies into an SPMD region. A
body that begins with `func` is a whole text. `$ACC` is a type and `$OPERANDS` stands for three matrices, see below.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tlx.diagnostics import Source, TlxError
from tlx.frontends.tensor_language.check import check_program
from tlx.frontends.tensor_language.errors import ProgramError
from tlx.frontends.tensor_language.syntax.parser import parse

PARAMETERS: Final = """
    %p: bool, %s: i8, %i: i32, %j: i32, %l: i64, %n: index, %m: index,
    %b: bf16, %h: f16, %f: f32, %d: f64, %c: c32, %z: c64,
    %F: memref<f32>, %K: memref<f32x8>, %R: memref<f32x16>, %S: memref<f32x4>, %T: memref<f32x16x8x4>,
    %A: memref<f32x16x8>, %B: memref<f32x8x4>, %C: memref<f32x16x4>, %X: memref<f32x8x16>, %Y: memref<f32x4x8>,
    %DA: memref<f64x16x8>, %DC: memref<f64x16x4>, %IB: memref<i32x8x4>, %HB: memref<f16x8x4>, %HK: memref<f16x8>,
    %BA: memref<bf16x16x8>, %CC: memref<c32x16x4>, %CF: memref<c32>, %IF: memref<i32>, %II: memref<i32x?x?>,
    %Q: memref<f32x?x?>, %q: memref<f32x?>, %P: memref<f32x16x8,strided<2,48>>, %U: memref<f32x16x8,strided<1,?>>,
    %V: memref<f32x16x16>, %V2: memref<f32x16x16>, %R2: memref<f32x16>, %Q2: memref<f32x?x?>, %W: memref<f32x8x?>,
    %G: group<memref<f32x16x8>x4>, %H: group<memref<f32x?x?>x?,offset:?>"""
ABBREVIATIONS: Final = {
    "$OPERANDS": """%u = constant 1.0 : coopmatrix<f32x16x8,matrix_a>
    %v = constant 1.0 : coopmatrix<f32x8x16,matrix_b>
    %w = constant 1.0 : $ACC""",
    "$ACC": "coopmatrix<f32x16x16,matrix_acc>",
}
RULES: Final = Path(__file__).parent / "rules"
HEAD: Final = f"func @kernel({PARAMETERS}) {{\n"


@dataclass(frozen=True, slots=True)
class Case:
    """A rule.

    Attributes:
        rule: Its name.
        accepted: A body that keeps it.
        rejected: A body that breaks it, and no other.
        message: The error.
    """

    rule: str
    accepted: str
    rejected: str
    message: str


def read_cases() -> list[Case]:
    """All cases of all files."""
    return [
        _case(f"{path.stem}-", text)
        for path in sorted(RULES.glob("*.txt"))
        for text in path.read_text(encoding="utf-8").split("=== ")[1:]
    ]


def _case(prefix: str, text: str) -> Case:
    head, _, bodies = text.partition("\n")
    accepted, _, rest = bodies.partition("--- ")
    message, _, rejected = rest.partition("\n")
    rule, _, place = head.partition(", ")
    if place == "in parallel":
        accepted, rejected = (f"parallel {{\n{body}}}" for body in (accepted, rejected))
    return Case(prefix + rule, accepted, rejected, message)


def text_of(body: str) -> str:
    """The text of a kernel; a body that begins with `func` is one already."""
    for short, long in ABBREVIATIONS.items():
        body = body.replace(short, long)
    return body if body.startswith("func") else f"{HEAD}{body}\n}}\n"


def errors_of(text: str) -> list[TlxError]:
    """What the checker finds in a text, which must parse."""
    program = parse(Source("kernel.tl", text))
    try:
        check_program(program)
    except ProgramError as error:
        return error.errors
    return []


def without_marks(text: str) -> tuple[str, list[tuple[int, int]]]:
    """A text without its marks, and the ranges that they stood around."""
    spans: list[tuple[int, int]] = []
    plain = ""
    for part in text.split("⟦"):
        inside, mark, after = part.rpartition("⟧")
        if mark:
            spans.append((len(plain), len(plain) + len(inside)))
        plain += inside + after
    return plain, spans
