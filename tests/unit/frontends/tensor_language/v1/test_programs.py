"""Whole programs of the first version: conversions are valid in the second, and no text breaks the parser."""

from __future__ import annotations

import random
import re

import pytest

from tests.unit.frontends.tensor_language.v1.kernels import FUSED, KERNELS
from tests.unit.frontends.tensor_language.v1.texts import PARAMETERS, converted, read
from tlx.diagnostics import Source
from tlx.frontends.tensor_language.check import check_program
from tlx.frontends.tensor_language.errors import ProgramError
from tlx.frontends.tensor_language.syntax import parser
from tlx.frontends.tensor_language.syntax.printer import print_program

_CHUNKS = 20
_MUTANTS_EACH = 100


@pytest.mark.parametrize("name", KERNELS)
def test_the_converted_program_is_right_in_version_2(name: str) -> None:
    program = read(KERNELS[name])
    check_program(program)
    again = parser.parse(Source("v2.tl", print_program(program)))
    assert again == program
    check_program(again)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("%x = arith.add 1, 2.0 : f32", "2:16: error: constant: f32 takes"),
        ("%x = arith.add %i, 99999999999 : i32", "2:20: error: constant: 99999999999 does not fit i32"),
        ("%x = expand %v[0->-2x-4] : memref<f32x8>", "2:6: error: memref<f32x-2x-4>"),
        ("%x = subview %v[%i] : memref<f32x8>", "2:17: error: subview: %i must be of type index"),
        ("%x = subview %v[%n:?] : memref<f32x8> %x = group_id", "2:39: error: %x"),
        ("foreach %k=0,%n { %t = alloca -> memref<f32x4> }", "2:24: error: alloca is collective"),
    ],
)
def test_rules_of_version_2_are_checked_at_places_of_the_text(text: str, error: str) -> None:
    program = read(f"func @f({PARAMETERS}) {{\n{text}\n}}")
    with pytest.raises(ProgramError) as raised:
        check_program(program)
    assert raised.value.render().splitlines()[0].removeprefix("v1.tl:").startswith(error)


def test_the_fused_kernel() -> None:
    new = """
        func @two_products(%factor: f64, %in: group<memref<f64x20x9>x?>, %stiff: memref<f64x9x9>,
                           %mass: memref<f64x9x12>, %out: memref<f64x20x12x?>)
            attributes {work_group_size=[32,1], subgroup_size=16, "groups_without_size"=true} {
            %e = group_id.x : index
            %mine = load %in[%e] : memref<f64x20x9>
            %sum = subview %out[0:20,0:12,%e] : memref<f64x20x12>
            %tmp = alloca : memref<f64x20x9,local>
            %c1_f64 = constant 1.0 : f64
            %c0_f64 = constant 0.0 : f64
            gemm.n.t %c1_f64, %mine, %stiff, %c0_f64, %tmp
            %c1_f64_1 = constant 1.0 : f64
            gemm %factor, %tmp, %mass, %c1_f64_1, %sum
            lifetime_stop %tmp
        }
    """
    assert converted(FUSED) == print_program(parser.parse(Source("v2.tl", new)))


@pytest.mark.parametrize("chunk", range(_CHUNKS))
def test_a_changed_text_is_a_program_or_a_program_error(chunk: int) -> None:
    rng = random.Random(chunk)
    texts = list(KERNELS.values())
    for _ in range(_MUTANTS_EACH):
        text = _mutant(rng, rng.choice(texts))
        error = _error(text)
        if error is not None:
            assert all(e.span is not None for e in error.errors), text
            assert error.render()


def _error(text: str) -> ProgramError | None:
    """What is wrong with a text; what is right prints as version 2 and reads as the same again."""
    try:
        program = read(text)
        check_program(program)
    except ProgramError as error:
        return error
    printed = print_program(program)  # not the tree: nan differs from itself
    assert print_program(parser.parse(Source("v2.tl", printed))) == printed, text
    return None


def _mutant(rng: random.Random, text: str) -> str:
    """A text with one to three of its tokens or characters changed."""
    for _ in range(rng.randint(1, 3)):
        tokens = re.findall(r"[%@.]?\w+|\s+|.", text)
        at = rng.randrange(len(tokens))
        match rng.randrange(6):
            case 0:
                del tokens[at]
            case 1:
                tokens.insert(at, rng.choice(tokens))
            case 2:
                tokens[at] = rng.choice(tokens)
            case 3:
                other = rng.randrange(len(tokens))
                tokens[at], tokens[other] = tokens[other], tokens[at]
            case 4:
                tokens[at] = rng.choice(
                    ("?", "-1", "0", "99999999999999999999", "i1", "true", "1e999", "nan", "\0", "é")
                )
            case _:
                start = rng.randrange(len(tokens))
                tokens[at:at] = tokens[start : start + rng.randint(1, 12)]
        text = "".join(tokens)
    return text
