"""Convolutions of half and bfloat whose operands are converted to float once, if that takes less time."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

import tlx
from tests.semantics.contraction.test_dilated_inputs import Case, evaluated, stage1
from tests.semantics.to_2d.contract import check_contract, poisoned
from tlx.ir.parser.module import parse
from tlx.lower.pipeline import lower
from tlx.target.costs.blocks import ConvolutionCosts
from tlx.target.lookup import find_target

NONE = ((1, 1), (0, 0), (0, 0))
CASES = [
    Case(("bfloat", "float"), (1, 1, 20, 33), (1, 1, 7, 6), NONE),
    Case(("bfloat", "bfloat"), (2, 3, 9, 12), (2, 3, 3, 3), ((2, 1), (0, 0), (0, 1)), "relu"),
    Case(("bfloat", "bfloat"), (1, 4, 9, 9), (4, 1, 7, 7), NONE, "image"),
    Case(("bfloat", "float"), (12, 17), (5, 6), NONE, "bias"),
    Case(("half", "half"), (1, 2, 9, 14), (3, 2, 4, 5), NONE, "bias", (0, 2, 3, 1)),
    Case(("half", "float"), (1, 6, 8, 8), (4, 3, 3, 3), ((1, 2), (0, 0), (0, 0)), "in place"),
]


@pytest.mark.parametrize("target", ["generic", "avx512", "amx"])
@pytest.mark.parametrize("case", CASES)
def test_wide_operands_mean_the_same(case: Case, target: str) -> None:
    """On a machine where this always pays off; loads of half may convert, too."""
    base = find_target(target)
    machine = replace(
        base, block_costs=replace(base.block_costs, convolutions=ConvolutionCosts(max_alternative_share=math.inf))
    )
    expected = evaluated(parse(case.text), case.inputs())
    module = stage1(case, machine)
    check_contract(module)
    assert ("%x.buf" in str(module)) == (case.types[0] == "bfloat" or target == "generic")
    np.testing.assert_array_equal(evaluated(module, case.inputs()), expected)
    if case.following != "in place":
        np.testing.assert_array_equal(evaluated(poisoned(module), case.inputs()), expected)
    np.testing.assert_array_equal(evaluated(lower(parse(case.text), machine), case.inputs()), expected)
    arguments = case.inputs()
    tlx.compile(case.text, "native", opt_level=0)(*arguments)
    np.testing.assert_array_equal(arguments[0], expected)


@pytest.mark.parametrize("kernel", [(3, 3, 3), (2, 3, 3)])
def test_blocks_for_vectors_mean_the_same_with_a_matrix_unit(kernel: tuple[int, ...]) -> None:
    case = Case(("i8", "i32"), (1, 16, 6, 7, 16), (16, 16, *kernel), ((1, 1, 1), (0, 0, 0), (0, 0, 0)), "bias")
    expected = evaluated(parse(case.text), case.inputs())
    module = stage1(case, "amx")
    check_contract(module)
    assert "%last.buf" in str(module)  # channels innermost, which no copy for tiles has here
    np.testing.assert_array_equal(evaluated(module, case.inputs()), expected)
    np.testing.assert_array_equal(evaluated(lower(parse(case.text), "amx"), case.inputs()), expected)
