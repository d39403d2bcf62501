"""Trees that cannot come from a text: violations of the grammar are reported, too, without a location."""

from __future__ import annotations

import pytest

from tests.unit.frontends.tensor_language.check.trees import TREES, instruction_in
from tlx.frontends.tensor_language.check import check_program
from tlx.frontends.tensor_language.errors import ProgramError
from tlx.frontends.tensor_language.operations.context import DEEPEST
from tlx.frontends.tensor_language.operations.control import If, Parallel
from tlx.frontends.tensor_language.operations.memory import Load
from tlx.frontends.tensor_language.syntax.nodes import Name, Program, Region, TypeRef
from tlx.frontends.tensor_language.types import F32


@pytest.mark.parametrize("name", TREES)
def test_rejects(name: str) -> None:
    program, message = TREES[name]
    with pytest.raises(ProgramError) as caught:
        check_program(program)
    assert [error.message for error in caught.value.errors] == [message]
    assert caught.value.render() == f"error: {message}"


def test_accepts_an_empty_program() -> None:
    check_program(Program())


def test_names_the_missing_result() -> None:
    load = Load(source=Name("A"), indices=(Name("n"),))
    with pytest.raises(ProgramError, match="load gives one result of one type, but it is written with 0 names"):
        check_program(instruction_in(load))


def test_results_of_a_malformed_instruction_are_known() -> None:
    load = Load(results=(Name("x"), Name("y")), types=(TypeRef(F32),), source=Name("A"), indices=(Name("n"),))
    use = Load(results=(Name("z"),), types=(TypeRef(F32),), source=Name("A"), indices=(Name("y"),))
    with pytest.raises(ProgramError) as caught:
        check_program(instruction_in(load, use))
    messages = [error.message for error in caught.value.errors]
    assert messages == ["load gives one result of one type, but it is written with 2 names and 1 type"]


def test_nesting_has_a_limit() -> None:
    body = Region()
    for _ in range(DEEPEST + 50):
        body = Region([If(condition=Name("p"), then=body)])
    with pytest.raises(ProgramError, match=f"regions are nested more than {DEEPEST} deep") as caught:
        check_program(instruction_in(Parallel(body=body)))
    assert len(caught.value.errors) == 1
