"""The choice of blocks for a contraction, and its estimated cycles."""

from __future__ import annotations

import math

import pytest

from tlx.ir.types import FLOAT
from tlx.lower.memory.views import NO_ADDRESS
from tlx.lower.to_2d.contraction.problem import Contraction, OperandMemory
from tlx.lower.to_2d.contraction.strategy import choose_blocking, compute_unit
from tlx.lower.to_2d.loop_nests import LoopDim
from tlx.target.lookup import find_target

_LAST = (1, 56 * 48, 48)
"""Strides in a 56 x 56 image of 48 channels, the last in memory: of the channels, the rows and the columns."""


def _contraction(*leaves: tuple[int, int, int]) -> Contraction:
    """A convolution of 3 x 3 filters, with operands of its epilogue."""
    c, h, w = ((*_LAST[d : d + 1] * 2, *(leaf[d] for leaf in leaves)) for d in range(3))
    none = (0,) * (2 + len(leaves))
    memory = OperandMemory(NO_ADDRESS, FLOAT)
    k = [(64, 9, 1), (3, 3, 58 * 64), (3, 1, 64)]
    return Contraction(
        "matmul",
        memory,
        memory,
        memory,
        (),
        (LoopDim(48, (576, 0, *c)),),
        (LoopDim(56, (0, 58 * 64, *h)), LoopDim(56, (0, 64, *w))),
        tuple(LoopDim(extent, (lhs, rhs, *none)) for extent, lhs, rhs in k),
        may_transpose=True,
    )


@pytest.mark.parametrize("leaves", [[_LAST], [(1, 0, 0)], [(1, 0, 0), _LAST]])
def test_a_bias_and_a_residual_change_nothing_but_the_strides(leaves: list[tuple[int, int, int]]) -> None:
    alone, fused = _contraction(), _contraction(*leaves)
    unit = compute_unit(find_target("avx512"), alone, FLOAT)
    first, second = choose_blocking(alone, unit), choose_blocking(fused, unit)
    assert first is not None
    assert second is not None
    assert first[1] == second[1]
    assert first[0].copied == second[0].copied
    for run, other in zip((first[0].m, first[0].n, first[0].k), (second[0].m, second[0].n, second[0].k), strict=True):
        assert [dim.extent for dim in run.dims] == [dim.extent for dim in other.dims]
        assert other.strides[:4] == run.strides
        assert len(other.strides) == 4 + len(leaves)


def test_an_operand_in_another_order_restricts_the_choice() -> None:
    leaf = (56 * 56, 56, 1)
    c = _contraction(leaf)
    choice = choose_blocking(c, compute_unit(find_target("avx512"), c, FLOAT))
    assert choice is not None
    assert math.isfinite(choice[1])
    m, n = choice[0].m, choice[0].n
    assert n.strides[4] <= 1 or m.strides[4] == 1


def _cycles_of_filters(pitch: int) -> float:
    """The cycles of 256 filters of 1024 x 1 x 1 on an image of 14 x 14, with channels last in rows that far apart."""
    memory = OperandMemory(NO_ADDRESS, FLOAT)
    m, k = LoopDim(256, (1024, 0, 1, 1)), LoopDim(1024, (1, 196, 0, 0))
    n = tuple(LoopDim(14, (0, step, out, out)) for step, out in ((14, pitch), (1, 256)))
    c = Contraction("matmul", memory, memory, memory, (), (m,), n, (k,), may_transpose=True)
    choice = choose_blocking(c, compute_unit(find_target("avx512"), c, FLOAT))
    assert choice is not None
    return choice[1]


def test_an_operand_as_large_as_the_cache_does_not_stay_there() -> None:
    """Filters of 1 MiB are read again by each of 14 products, where one product would read them once."""
    assert _cycles_of_filters(16 * 256) > 1.05 * _cycles_of_filters(14 * 256)
