"""Texts of the tensor language that end too early, are too deep, or take long to refuse."""

from __future__ import annotations

import pytest

from tests.unit.frontends.tensor_language.syntax.parser_errors import errors_of
from tlx.frontends.tensor_language import parse
from tlx.frontends.tensor_language.syntax.cursor import MAX_NESTING

UNFINISHED = [
    ("%x = add %a,", "expected the second operand of 'add' (%name), found the end of the line"),
    ("%x = neg %a", "expected ':' and the type of the result of 'neg', found the end of the line"),
    ("%x = neg %a :", "expected a boolean, number or coopmatrix type"),
    ("lifetime_stop", "expected the memref of 'lifetime_stop' (%name), found the end of the line"),
    ("store %a, %A[", "expected an index of 'store' (%name), found the end of the line"),
    ("%x =", "expected an instruction, found the end of the line"),
    ("parallel", "expected '{' and the region of 'parallel', found the end of the line"),
]


@pytest.mark.parametrize(("line", "message"), UNFINISHED)
def test_a_line_that_ends_too_early_is_marked_at_its_end(line: str, message: str) -> None:
    (error,) = errors_of(f"func @f() {{\n  {line} ; a comment\n  %ok = constant 1 : index\n}}").errors
    assert error.message.startswith(message)
    assert error.span is not None
    assert error.span.place == f"k.tl:2:{len(line) + 3}"


@pytest.mark.parametrize("opening", ["parallel {", "if %a { } else {", "for %i=%a,%b {", "foo {", "{"])
def test_deep_regions_are_an_error(opening: str) -> None:
    error = errors_of(f"func @f() {{ {opening * 10_000}").errors[0]
    deep = errors_of(f"func @f() {{ {opening * 10_000} {'}' * 10_000} }} func @g() {{ foobarbaz }}").errors
    assert any(e.message == f"regions nested too deeply: at most {MAX_NESTING} levels" for e in deep)
    assert deep[-1].message == "unknown instruction 'foobarbaz'"
    assert error.span is not None


def test_regions_as_deep_as_allowed_parse() -> None:
    levels = MAX_NESTING - 1
    assert parse(f"func @f() {{ {'parallel {' * levels} {'}' * levels} }}").functions
    assert len(errors_of(f"func @f() {{ {'parallel {' * (levels + 1)} {'}' * (levels + 1)} }}").errors) == 1


@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"a"=', "}")])
def test_deep_attributes_are_an_error(opening: str, closing: str) -> None:
    nested = f"{opening * 10_000}1{closing * 10_000}"
    actual = errors_of(f'func @f() attributes {{"x"={nested}}} {{ foobarbaz }}').errors
    assert actual[0].message == f"attributes nested too deeply: at most {MAX_NESTING} levels"
    assert actual[-1].message == "unknown instruction 'foobarbaz'"


HOSTILE = [
    "{",
    "}",
    "func @f() {",
    "%a = add %b ",
    "%a, ",
    "%a = foo ",
    'x {"a" ',
    "func @f(%a: ",
    "@ # \0 ",
    "cmp.lt ",
    "f32x4x",
    "(",
    '"',
    "1",
]


@pytest.mark.parametrize("piece", HOSTILE)
def test_errors_take_linear_time(piece: str) -> None:
    # What is quadratic in the length would take minutes here.
    assert errors_of(f"func @f() {{ {piece * 20_000}").errors
