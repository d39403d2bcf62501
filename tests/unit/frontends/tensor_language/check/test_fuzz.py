"""Random changes of kernels and trees: the checker accepts them or reports an error."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import Final

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.unit.frontends.tensor_language.check.cases import errors_of, read_cases, text_of, without_marks
from tests.unit.frontends.tensor_language.syntax.trees import PROGRAMS
from tlx.diagnostics import Source
from tlx.frontends.tensor_language.check import check_program
from tlx.frontends.tensor_language.errors import ProgramError
from tlx.frontends.tensor_language.syntax.nodes import Program
from tlx.frontends.tensor_language.syntax.parser import parse

BODIES: Final = [body for case in read_cases() for body in (case.accepted, without_marks(case.rejected)[0])]
NAMES: Final = re.compile(r"%\w+")
NUMBERS: Final = re.compile(r"(?<![\w%.])-?\d+(?![\w.])")
SCALARS: Final = re.compile(r"\b(?:[ifc]\d\d?|bf16|bool|index)\b")
PARAMETERS: Final = "%p %s %i %l %n %b %h %f %d %c %z %F %K %T %A %B %Q %P %U %G %H %x %e %unknown".split()
VALUES: Final = [*map(str, (-1, 0, 1, 2, 3, 7, 16, 17, 32, 1 << 40)), "1.0", "[1.0,0.0]", "true"]
TYPES: Final = "bool i8 i32 i64 index bf16 f16 f32 f64 c32 c64".split()


@st.composite
def changed_bodies(draw: st.DrawFn) -> str:
    """A body of a case with some names, numbers and types put in place of others."""
    body = text_of(draw(st.sampled_from(BODIES)))
    for _ in range(draw(st.integers(1, 3))):
        pattern, words = draw(st.sampled_from([(NAMES, PARAMETERS), (NUMBERS, VALUES), (SCALARS, TYPES)]))
        places = list(pattern.finditer(body, body.index("{")))
        if places:
            place = draw(st.sampled_from(places))
            body = body[: place.start()] + draw(st.sampled_from(words)) + body[place.end() :]
    return body


@given(changed_bodies())
@settings(max_examples=300)
def test_changed_kernels(text: str) -> None:
    try:
        parse(Source("kernel.tl", text))
    except ProgramError:
        return
    for error in errors_of(text):
        assert error.span is not None
        assert error.render().startswith("kernel.tl:")


@given(st.lists(st.sampled_from(BODIES), min_size=2, max_size=6))
@settings(max_examples=100)
def test_kernels_in_one_function(bodies: list[str]) -> None:
    text = text_of("\n".join(body for body in bodies if not body.startswith("func")))
    with suppress(ProgramError):
        check_program(parse(Source("kernel.tl", text)))


@given(PROGRAMS)
@settings(max_examples=50, suppress_health_check=[HealthCheck.too_slow])
def test_random_trees(program: Program) -> None:
    with suppress(ProgramError):
        check_program(program)
