"""Contractions and convolutions: the same memory after stage 1, after all stages, and as machine code."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import tlx
from tests.semantics.contraction.decisions import drawn_decisions, names_of, stage1, with_costs
from tests.semantics.contraction.programs import LARGE, SMALL, Program, contraction, convolution
from tests.semantics.to_2d.contract import check_contract, poisoned
from tests.support.tools import quick, require_processor
from tlx.evaluate import Machine
from tlx.intrinsics.numpy_types import Array
from tlx.ir.module import Module
from tlx.ir.parser.module import parse
from tlx.ir.types import BFLOAT, HALF, FloatType
from tlx.llvm.verification import check_module
from tlx.lower.pipeline import lower
from tlx.target.lookup import find_target

Generate = Callable[..., Program]

EACH = 40
"""Programs of each part."""
GENERATORS = [contraction, convolution]
DECISIONS = {"block.loop", "smma"}
"""Names that depthwise blocks and chains of products leave in the IR."""
COPIES = {contraction: {"lhs.buf", "rhs.buf"}, convolution: {"x.buf", "w.buf", "split.buf", "transpose"}}
"""Names that copied operands leave, by generator."""
EPSILON = {HALF: 2.0**-10, BFLOAT: 2.0**-7}


def evaluated(program: Program, module: Module) -> Array:
    arguments = program.inputs()
    Machine(module).call("f", *arguments)
    return arguments[2]


def assert_same(program: Program, expected: Array, got: Array) -> None:
    """Integers must agree bit for bit; sums of floats may be rounded in another order, and once when stored."""
    element = program.elements[2]
    if not isinstance(element, FloatType):
        np.testing.assert_array_equal(expected, got)
        return
    one, other = expected.astype(np.float64), got.astype(np.float64)
    exact = EPSILON.get(element, 2.0**-23)
    np.testing.assert_allclose(other, one, rtol=2 * exact, atol=1e-6 * program.terms)


@pytest.mark.parametrize("part", quick(range(3)))
@pytest.mark.parametrize("generate", GENERATORS)
def test_stage_1_means_the_same(generate: Generate, part: int) -> None:
    for seed in range(part * EACH, (part + 1) * EACH):
        program = generate(seed)
        expected = evaluated(program, parse(program.text))
        module = stage1(program.text if seed % 3 else program.typed, find_target("generic"))
        check_contract(module)
        check_module(module, "to-2d")
        got = evaluated(program, module)
        assert_same(program, expected, got)
        np.testing.assert_array_equal(got, evaluated(program, poisoned(module)))


@pytest.mark.parametrize(("target", "first"), [("generic", 3000), ("avx512", 3040), ("amx", 3080)])
@pytest.mark.parametrize("generate", GENERATORS)
def test_every_choice_means_the_same(generate: Generate, target: str, first: int) -> None:
    """The blocking, the copies and the layout of the input affect only the cost, so a seed may decide on them."""
    names: set[str] = set()
    for seed in range(first, first + EACH):
        program = generate(seed)
        expected = evaluated(program, parse(program.text))
        module = stage1(program.text, drawn_decisions(target, seed))
        check_contract(module)
        got = evaluated(program, module)
        assert_same(program, expected, got)
        np.testing.assert_array_equal(got, evaluated(program, poisoned(module)))
        names |= names_of(module)
    assert names >= DECISIONS | COPIES[generate]


def test_one_of_two_copies_is_sliced() -> None:
    """The batch is innermost in memory: both operands are copied, the larger one slice by slice.

    The loop around the slices advances in the whole copy of the other operand, too.
    """
    dense = "<3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> zeroinitializer"
    text = f"""
define void @f(ptr noalias %a, ptr noalias %b, ptr noalias %c) {{
  %x = call token @llvm.tensor.load(ptr elementtype(i32) %a, <3 x i32> <i32 9, i32 20, i32 4>, {dense}, <3 x i32> zeroinitializer)
  %y = call token @llvm.tensor.load(ptr elementtype(i32) %b, <3 x i32> <i32 20, i32 24, i32 4>, {dense}, <3 x i32> zeroinitializer)
  %z = call <864 x i32> @llvm.tensor.contract(token %x, token %y, <1 x i32> <i32 1>, <1 x i32> <i32 0>, <1 x i32> <i32 2>, <1 x i32> <i32 2>)
  %t = call token @llvm.tensor.typeinfo(<864 x i32> %z, <3 x i32> <i32 4, i32 9, i32 24>, {dense})
  call void @llvm.tensor.store(ptr %c, token %t, <3 x i32> zeroinitializer)
  ret void
}}
"""  # noqa: E501
    module = stage1(text, with_costs("generic", cached_operand_bytes=2 << 10))
    assert "part.loop" in str(module)
    a, b = (np.arange(720, dtype=np.int32), np.arange(1920, dtype=np.int32) % 97)
    c = np.zeros(864, np.int32)
    Machine(module).call("f", a, b, c)
    expected = np.einsum("mkb,knb->bmn", a.reshape(9, 20, 4), b.reshape(20, 24, 4))
    np.testing.assert_array_equal(c.reshape(4, 9, 24), expected)


@pytest.mark.parametrize("target", ["generic", "avx512"])
@pytest.mark.parametrize("generate", GENERATORS)
def test_machine_code_computes_the_same(generate: Generate, target: str) -> None:
    require_processor(target)
    for seed in range(1000, 1024):
        program = generate(seed, SMALL if seed % 2 else LARGE)
        expected = evaluated(program, parse(program.text))
        arguments = program.inputs()
        tlx.compile(program.text, target=target)(*arguments)
        assert_same(program, expected, arguments[2])


@pytest.mark.parametrize("generate", GENERATORS)
def test_all_stages_on_amx_mean_the_same(generate: Generate) -> None:
    for seed in range(2000, 2010):
        program = generate(seed)
        expected = evaluated(program, parse(program.text))
        assert_same(program, expected, evaluated(program, lower(parse(program.text), "amx")))
