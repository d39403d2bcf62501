"""The printer: its form, and that what it prints parses to the same tree."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.unit.frontends.tensor_language.syntax.trees import (
    CONSTANTS,
    PROGRAMS,
    TYPES,
    instruction_classes,
    instructions_of,
)
from tlx.diagnostics import UsageError
from tlx.frontends.tensor_language import parse
from tlx.frontends.tensor_language.operations.scalars import Constant
from tlx.frontends.tensor_language.syntax.nodes import (
    Attribute,
    Dictionary,
    Function,
    Instruction,
    Name,
    NamedAttribute,
    Program,
    Region,
    TypeRef,
)
from tlx.frontends.tensor_language.syntax.printer import print_instruction, print_program
from tlx.frontends.tensor_language.types import F64, Type

CANONICAL = """\
func @first() {}

func @kernel(%alpha: f32, %A: memref<f32x4x?> {alignment=64}) attributes {subgroup_size=16} {
    %c0 = constant 0 : index
    %half = constant 0.5 : f32
    %t = alloca {alignment=8} : memref<f32x4x8,local>
    %v = subview %A[0:4, %c0:8, %c0] : memref<f32x4x8,strided<1,?>>
    gemm.atomic.n.t %alpha, %t, %v, %half, %A
    %x, %y = for %i=%c0,%n init(%a=%half, %b=%half) -> (f32, f32) {
        %c = add %a, %b : f32
        yield (%c, %a)
    } attributes {unroll=4}
    foreach (%i, %j)=(%c0, %c0),(%m, %n) {
        %p = less_than %i, %j : bool
        if %p {
            store %x, %A[%i, %j]
        } else {
            store %y, %A[%i, %j]
        }
    }
    parallel {}
}
"""


def test_canonical_text_stays_as_it_is() -> None:
    assert print_program(parse(CANONICAL)) == CANONICAL


def test_defaults_are_left_out() -> None:
    text = (
        "func @f(%A: memref<f32x4x8,strided<1,4>,global>, %B: group<memref<f32>x2,offset:0> {}) attributes {} {"
        "gemm.n.n %a, %A, %A, %b, %A axpby.n %a, %A, %b, %A"
        "%x = atomic_load.work_group.relaxed %A[] : f32 }"
    )
    assert print_program(parse(text)) == (
        "func @f(%A: memref<f32x4x8>, %B: group<memref<f32>x2>) {\n"
        "    gemm %a, %A, %A, %b, %A\n"
        "    axpby %a, %A, %b, %A\n"
        "    %x = atomic_load %A[] : f32\n"
        "}\n"
    )


def test_many_parameters_get_a_line_each() -> None:
    text = "func @f(\n" + ",\n".join(f"        %p{i}: memref<f32x?x?>" for i in range(8)) + "\n) {\n    barrier\n}\n"
    assert print_program(parse(text)) == text


def test_an_empty_program_is_empty_text() -> None:
    assert not print_program(Program())


@pytest.mark.parametrize("bad", ['"', "\n", "é"])
def test_strings_that_cannot_be_spelled_are_an_error(bad: str) -> None:
    attributes = Dictionary((NamedAttribute("x", True, Attribute(bad)),))
    function = Function(name=Name("f"), parameters=(), attributes=attributes, body=Region())
    with pytest.raises(UsageError, match="has no text"):
        print_program(Program([function]))


def parsed_back(instruction: Instruction) -> Instruction:
    (function,) = parse(f"func @f() {{ {print_instruction(instruction)} }}").functions
    (result,) = function.body.instructions
    return result


@pytest.mark.parametrize("cls", instruction_classes())
def test_every_instruction_round_trips(cls: type[Instruction]) -> None:
    @settings(max_examples=25, deadline=None, derandomize=True, database=None)
    @given(instructions_of(cls))
    def comes_back(tree: Instruction) -> None:
        assert repr(parsed_back(tree)) == repr(tree)

    comes_back()


@settings(max_examples=60, deadline=None, derandomize=True, database=None, suppress_health_check=[HealthCheck.too_slow])
@given(PROGRAMS)
def test_every_program_round_trips(program: Program) -> None:
    text = print_program(program)
    assert repr(parse(text)) == repr(program)
    assert print_program(parse(text)) == text


@settings(max_examples=300, deadline=None, derandomize=True, database=None)
@given(CONSTANTS)
def test_every_constant_round_trips(value: bool | complex) -> None:
    actual = parsed_back(Constant(results=(Name("x"),), types=(TypeRef(F64),), value=value))
    assert isinstance(actual, Constant)
    assert type(actual.value) is type(value)
    assert repr(actual.value) == repr(value)


@settings(max_examples=300, deadline=None, derandomize=True, database=None)
@given(st.one_of(TYPES))
def test_every_type_round_trips(type_: Type) -> None:
    (function,) = parse(f"func @f(%x: {type_}) {{}}").functions
    assert function.parameters[0].type.type == type_


def test_the_trees_hold_every_class() -> None:
    names = {cls.__name__ for cls in instruction_classes()}
    assert {"Gemm", "For", "CooperativeMatrixApply", "Yield"} <= names
    assert not {"Instruction", "Blas", "MatrixAccess"} & names
