"""Convolutions on vectors whose operands are copied by parts, or so that the products of a sum take turns."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import tlx
from tests.semantics.test_interleaved_images import Case, evaluated
from tests.semantics.to_2d_contract import check_contract, poisoned
from tlx.ir.parser.module import parse
from tlx.ir.tensors.calls import canonicalise
from tlx.ir.types import Type
from tlx.lower.context import LoweringContext
from tlx.lower.pipeline import lower
from tlx.lower.to_2d import to_2d
from tlx.lower.to_2d.contraction import blocking, choose_blocking, cost, depthwise
from tlx.lower.to_2d.contraction.blocking import Blocking
from tlx.lower.to_2d.contraction.cost import ComputeUnit
from tlx.lower.to_2d.contraction.depthwise import DepthwiseBlocking
from tlx.lower.to_2d.contraction.problem import RHS
from tlx.lower.to_2d.convolution import dense, layouts
from tlx.lower.to_2d.convolution.layouts import InputLayout, input_layouts
from tlx.lower.to_2d.convolution.problem import DenseConvolution
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
    """Whether the products of a sum take turns."""
    return choice.k_in_memory_order


def in_parts(choice: Blocking) -> bool:
    """Whether filters are copied by parts."""
    return choice.sliced_operand == RHS and choice.outer_n != ()


@pytest.fixture(autouse=True)
def _fresh_choices() -> None:
    choose_blocking._best_blocking.cache_clear()


def check(case: Case, target: str, found: str) -> None:
    """The same after stage 1, after all stages, and as machine code."""
    module = parse(case.text)
    expected = evaluated(case, module)
    canonicalise(module)
    to_2d(module, LoweringContext(find_target(target)))
    check_contract(module)
    assert found in str(module)
    np.testing.assert_array_equal(expected, evaluated(case, module))
    np.testing.assert_array_equal(expected, evaluated(case, poisoned(module)))
    np.testing.assert_array_equal(expected, evaluated(case, lower(parse(case.text), target)))
    arguments = case.inputs()
    tlx.compile(case.text, "native", opt_level=0)(*arguments)
    np.testing.assert_array_equal(expected, arguments[2])


def prefer(monkeypatch: pytest.MonkeyPatch, wanted: Callable[[Blocking], bool]) -> None:
    """Have a kind of choice cost nothing."""
    true_cost = cost.blocking_cycles

    def estimate(choice: Blocking, unit: ComputeUnit) -> float:
        return true_cost(choice, unit) * (1e-6 if wanted(choice) else 1)

    def never(_choice: DepthwiseBlocking, _lanes: int) -> float:
        return 1e12

    monkeypatch.setattr(choose_blocking, "blocking_cycles", estimate)
    monkeypatch.setattr(depthwise, "depthwise_cycles", never)


@pytest.mark.parametrize(("case", "target"), [*((case, "avx512") for case in CASES), (CASES[0], "avx2")])
def test_products_that_take_turns_mean_the_same(case: Case, target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether that pays is a matter of cost only: here it always does."""
    prefer(monkeypatch, in_turns)
    check(case, target, "rhs.buf")


@pytest.mark.parametrize("case", CASES)
def test_filters_copied_by_parts_mean_the_same(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    """Caches are as small as that takes."""
    for module in (blocking, cost, choose_blocking):
        monkeypatch.setattr(module, "NEAR_BYTES", _NEAR)
    prefer(monkeypatch, in_parts)
    check(case, "avx512", "part.loop")


@pytest.mark.parametrize("case", TALL)
def test_images_copied_by_parts_mean_the_same(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    """Here the last kind of copy is made, of what few rows of the result need at a time, with gaps between pixels."""
    _, _, rows, columns = case.shapes[0]
    most = 4 * int(np.prod(case.shapes[0])) * (rows // 2 + case.strides[0]) // rows * (columns + 2) // columns

    def last(_target: Target, problem: DenseConvolution, element: Type) -> tuple[InputLayout, float]:
        return list(input_layouts(problem, ComputeUnit.of(find_target("avx512"), element, element, element)))[-1], 0.0

    def cycles(image: InputLayout) -> float:
        return float(np.prod(image.extents)) ** 2

    monkeypatch.setattr(dense, "NEAR_BYTES", most)
    monkeypatch.setattr(dense, "_BLOCK_BYTES", most)
    monkeypatch.setattr(layouts, "_CROWDED", 32)
    monkeypatch.setattr(dense, "best_layout", last)
    monkeypatch.setattr(InputLayout, "cycles", cycles)
    prefer(monkeypatch, in_turns)
    check(case, "avx512", "part.loop")
