"""Whole programs: valid ones pass, wrong ones give all errors at once and no consequential ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.frontends.tensor_language.check.cases import errors_of, text_of
from tlx.diagnostics import Source
from tlx.frontends import tensor_language
from tlx.frontends.tensor_language.errors import ProgramError
from tlx.frontends.tensor_language.syntax.parser import parse

_VIEW = "memref<f32x4x8,strided<1,16>>"
EXAMPLES = Path(__file__).parents[5] / "examples" / "tensor_language"
ACCEPTED = [*sorted((Path(__file__).parent / "accepted").glob("*.tl")), *sorted(EXAMPLES.glob("*.tl"))]


def messages(body: str) -> list[str]:
    return [error.message for error in errors_of(text_of(body))]


@pytest.mark.parametrize("path", ACCEPTED, ids=lambda path: path.stem)
def test_accepts(path: Path) -> None:
    if path.stem.endswith("_v1"):
        program = tensor_language.parse(path.read_text(encoding="utf-8"), std="v1")
    else:
        program = parse(Source(str(path), path.read_text(encoding="utf-8")))
    tensor_language.check_program(program)


def test_reports_everything_in_the_order_of_the_text() -> None:
    actual = messages(
        """
        %two = constant 2.0 : f32
        gemm.atomic %d, %A, %C, %two, %X
        %v = subview %A[%i:4, 0:8] : memref<f32x4x4,strided<1,16>>
        parallel {
            sum %f, %A, %f, %K
            %w = load %A[%n] : f64
        }
        """
    )
    assert actual == [
        "gemm: %d has type f64, which cannot be promoted to f32, the type of the product of %A and %C",
        "gemm: columns(op1(%A)) = 8 but rows(op2(%C)) = 16; the inner extents must be equal",
        "gemm.atomic: %two must be 0 or 1, but it is 2.0",
        "gemm: rows(op1(%A)) = 16 but rows(%X) = 8; the extents must be equal",
        "subview: %i must be of type index (cast it), but it is i32",
        f"subview: the result must have extent 8 in mode 1: expected {_VIEW}, not memref<f32x4x4,strided<1,16>>",
        "sum is collective and cannot be in an SPMD region: move it out of parallel, foreach, foreach_tile",
        "sum: rows(op(%A)) = 16 but rows(%K) = 8; the extents must be equal",
        "load: %A takes 2 indices, not 1: each mode takes one index",
        "load: the result must be f32, the element type of %A, not f64",
    ]


def test_reports_errors_of_every_function() -> None:
    text = "func @a(%x: f32) { %y = neg %z : f32 }\nfunc @a(%x: memref<f32x0>) attributes {subgroup_size=3} { }"
    assert [(e.span.place, e.message.partition(":")[0]) for e in errors_of(text) if e.span] == [
        ("kernel.tl:1:29", "%z is not defined here"),
        ("kernel.tl:2:6", "function @a is already defined"),
        ("kernel.tl:2:13", "memref<f32x0>"),
        ("kernel.tl:2:54", "subgroup_size must be a power of two from 1 to 128, but it is 3"),
    ]


@pytest.mark.parametrize(
    "body",
    [
        "%x = load %nothing[%n] : f32\n%y = add %x, %x : f32\nstore %y, %nothing[%n]",
        "%y = add %nothing, %f : f32\ngemm %nothing, %A, %B, %nothing, %C",
        "gemm %f, %nothing, %B, %f, %C\nsum %f, %nothing, %f, %nothing",
        "%x = if %nothing -> (f32) { yield (%nothing) } else { yield (%nothing) }",
        "%x = for %k=%nothing,%n,%nothing init(%c0=%nothing) -> (f32) { %y = add %k, %k : i8 yield (%c0) }",
        "foreach (%k)=(%nothing),(%n) { store %f, %Q[%k,%n] }",
        "parallel { cooperative_matrix_store %nothing, %nothing[%n,%nothing] barrier }",
        "parallel { %x = cooperative_matrix_mul_add %nothing, %nothing, %nothing : $ACC }",
        "parallel { %x = cooperative_matrix_apply (%r,%o,%v)=%nothing -> $ACC { %y = neg %v : f32 yield (%y) } }",
        "%x = subview %nothing[0:4] : memref<f32x4>\n%y = fuse %nothing[0,9] : memref<f32x4>",
        "%x = cast %nothing : f32\n%y = exp %nothing : f32\n%w = less_than %nothing, %n : bool",
    ],
)
def test_an_unknown_operand_is_reported_once(body: str) -> None:
    assert messages(body) == ["%nothing is not defined here: define it above, in this or an enclosing region"]


def test_a_name_with_two_types_is_silent_afterwards() -> None:
    body = "%x = add %f, %f : f32\n%x = add %d, %d : f64\n%y = add %x, %i : i32\n%z1 = add %x, %h : f16"
    assert [m.partition(",")[0] for m in messages(body)] == ["%x is already defined"]


def test_the_annotated_type_counts_after_an_error() -> None:
    body = "%x = add %f, %f : f64\n%y = add %x, %d : f64\n%w = add %x, %f : f64"
    assert messages(body) == [
        "add: the result must be f32, the type of the operands, not f64",
        "add: %x has type f64 but %f has type f32; both must have one type",
    ]


def test_notes_show_where_operands_are_declared() -> None:
    (error,) = errors_of("func @k(%a: f32, %A: memref<f32x4x8>, %B: memref<f32x9x3>, %C: memref<f32x4x3>) {\n"
                         "    gemm %a, %A, %B, %a, %C\n}\n")  # fmt: skip
    first = "func @k(%a: f32, %A: memref<f32x4x8>, %B: memref<f32x9x3>, %C: memref<f32x4x3>) {"
    assert error.render().splitlines() == [
        "kernel.tl:2:18: error: gemm: columns(op1(%A)) = 8 but rows(op2(%B)) = 9; the inner extents must be equal",
        "    gemm %a, %A, %B, %a, %C",
        "                 ^~",
        "kernel.tl:1:18: note: declared here: %A is memref<f32x4x8>",
        first,
        "                 ^~",
        "kernel.tl:1:39: note: declared here: %B is memref<f32x9x3>",
        first,
        "                                      ^~",
    ]


def test_notes_show_the_first_definition() -> None:
    (error,) = errors_of("func @k(%a: f32) {\n    %a = constant 1.0 : f32\n}\n")
    assert [(note.message, note.span and note.span.place) for note in error.notes] == [
        ("declared here", "kernel.tl:1:9")
    ]


def test_notes_show_a_definition_in_a_closed_region() -> None:
    (error,) = errors_of("func @k(%p: bool) {\n    if %p { %x = not %p : bool }\n    if %x { }\n}\n")
    assert [(note.message, note.span and note.span.place) for note in error.notes] == [
        ("declared here, in a region that has closed", "kernel.tl:2:13")
    ]


def test_the_checker_has_a_public_name() -> None:
    program = parse(Source("kernel.tl", "func @k() { %x = neg %y : f32 }"))
    with pytest.raises(ProgramError, match="%y is not defined here"):
        tensor_language.check_program(program)


def test_checking_changes_nothing() -> None:
    text = (Path(__file__).parent / "accepted" / "tiled_product.tl").read_text(encoding="utf-8")
    program = parse(Source("kernel.tl", text))
    tensor_language.check_program(program)
    assert program == parse(Source("kernel.tl", text))
