"""Convolutions on vectors with operands copied part by part, or with interleaved sums."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

import tlx
from tests.semantics.contraction.test_vnni_inputs import Case, evaluated
from tests.semantics.to_2d.contract import check_contract, poisoned
from tlx.ir.parser.module import parse
from tlx.ir.tensors.calls import canonicalise
from tlx.ir.types import Type
from tlx.lower.context import LoweringContext
from tlx.lower.cost import ComputeUnit
from tlx.lower.pipeline import lower
from tlx.lower.to_2d import to_2d
from tlx.lower.to_2d.contraction import cost, depthwise, strategy
from tlx.lower.to_2d.contraction.blocking import Blocking
from tlx.lower.to_2d.contraction.depthwise import DepthwiseBlocking
from tlx.lower.to_2d.contraction.problem import RHS
from tlx.lower.to_2d.convolution import dense
from tlx.lower.to_2d.convolution.problem import DenseConvolution, InputLayout, input_layouts
from tlx.target.hardware import BlockCosts
from tlx.target.lookup import find_target
from tlx.target.target import Target

F32 = ("float", "float")
CASES = [
    Case(F32, 24, 64, (6, 9), (3, 3)),
    Case(F32, 20, 64, (5, 11), (3, 3), images=2),
    Case(F32, 17, 96, (7, 9), (3, 3), strides=(2, 2)),
    Case(F32, 24, 64, (5, 12), (2, 3), strides=(1, 2), holes=(1, 0), images=2),
    Case(F32, 65, 96, (3, 9), (1, 2)),
]
TALL = [
    Case(F32, 24, 32, (14, 10), (3, 3), has_epilogue=True),
    Case(F32, 16, 32, (13, 11), (3, 3), strides=(2, 2), images=2),
    Case(F32, 32, 17, (15, 12), (2, 2), strides=(3, 1), holes=(2, 0)),
]
_NEAR = 32 << 10


def in_turns(choice: Blocking) -> bool:
    """Whether the products of a sum are interleaved."""
    return choice.k_in_memory_order


def in_parts(choice: Blocking) -> bool:
    """Whether filters are copied by parts."""
    return choice.sliced_operand(_NEAR) == RHS and choice.outer_n != ()


@pytest.fixture(autouse=True)
def _fresh_choices() -> None:
    strategy._best_blocking.cache_clear()


def check(case: Case, target: Target, found: str) -> None:
    """Check a case after stage 1, after all stages, and as machine code."""
    module = parse(case.text)
    expected = evaluated(case, module)
    canonicalise(module)
    to_2d(module, LoweringContext(target))
    check_contract(module)
    assert found in str(module)
    np.testing.assert_array_equal(expected, evaluated(case, module))
    np.testing.assert_array_equal(expected, evaluated(case, poisoned(module)))
    np.testing.assert_array_equal(expected, evaluated(case, lower(parse(case.text), target)))
    arguments = case.inputs()
    native = replace(find_target("native"), blocks=target.blocks)
    tlx.compile(case.text, native, opt_level=0)(*arguments)
    np.testing.assert_array_equal(expected, arguments[2])


def with_costs(target: str, **costs: object) -> Target:
    """A target whose blocks cost something else."""
    machine = find_target(target)
    return replace(machine, blocks=replace(machine.blocks, **costs))


def prefer(monkeypatch: pytest.MonkeyPatch, wanted: Callable[[Blocking], bool]) -> None:
    """Make a kind of blocking cost nothing."""
    true_cost = cost.blocking_cycles

    def estimate(choice: Blocking, unit: ComputeUnit) -> float:
        return true_cost(choice, unit) * (1e-6 if wanted(choice) else 1)

    def never(_choice: DepthwiseBlocking, _unit: ComputeUnit) -> float:
        return 1e12

    monkeypatch.setattr(strategy, "blocking_cycles", estimate)
    monkeypatch.setattr(depthwise, "depthwise_cycles", never)


@pytest.mark.parametrize(("case", "target"), [*((case, "avx512") for case in CASES), (CASES[0], "avx2")])
def test_products_that_take_turns_mean_the_same(case: Case, target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The cost model is patched so that this always pays off."""
    prefer(monkeypatch, in_turns)
    check(case, find_target(target), "rhs.buf")


@pytest.mark.parametrize("case", CASES)
def test_filters_copied_by_parts_mean_the_same(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    """Caches are so small that parts are made."""
    prefer(monkeypatch, in_parts)
    check(case, with_costs("avx512", near=_NEAR), "part.loop")


@pytest.mark.parametrize("case", TALL)
def test_images_copied_by_parts_mean_the_same(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    """Copy with channels innermost, a few rows of the result at a time, with padding between pixels."""
    _, _, rows, columns = case.shapes[0]
    most = 4 * int(np.prod(case.shapes[0])) * (rows // 2 + case.strides[0]) // rows * (columns + 2) // columns

    target = with_costs("avx512", copied_input=(most, most), crowded_pixels=32)

    def last(target: Target, problem: DenseConvolution, element: Type) -> tuple[InputLayout, float]:
        return list(input_layouts(problem, ComputeUnit.of(target, element, element, element)))[-1], 0.0

    def cycles(image: InputLayout, _costs: BlockCosts) -> float:
        return float(np.prod(image.extents)) ** 2

    monkeypatch.setattr(dense, "best_layout", last)
    monkeypatch.setattr(InputLayout, "cycles", cycles)
    prefer(monkeypatch, in_turns)
    check(case, target, "part.loop")
