"""Tiles ask for C and A on behalf of those behind them, where memory is far and there is time for it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tlx.ir.types import FLOAT
from tlx.knobs import Knobs
from tlx.lower.to_tiles.choose import choose
from tlx.lower.to_tiles.problem import Gemm
from tlx.lower.to_tiles.view import View
from tlx.target import Caches, targets

_TARGET = replace(targets()["avx512"], caches=Caches(48 << 10, 2 << 20, 64 << 20))


def _gemm(m: int, n: int, k: int, *, a_columns: bool = False) -> Gemm:
    a = View(FLOAT, m, k, *((1, m) if a_columns else (k, 1)))
    return Gemm(a, View(FLOAT, k, n, n, 1), View(FLOAT, m, n, n, 1), None, "f", "f")


@pytest.mark.parametrize(
    ("m", "n", "k", "asks"),
    [
        (256, 256, 256, ""),  # all stays in the second cache
        (512, 512, 512, "CA"),
        (2048, 2048, 2048, "CA"),
        (3136, 64, 576, "CA"),
        (64, 2048, 400, "C"),  # A stays near
        (3136, 256, 32, ""),  # over before anything comes
        (16, 1024, 1024, ""),  # B of the next pass is asked for, and C stays near
    ],
)
def test_what_comes_from_afar_is_asked_for(m: int, n: int, k: int, asks: str) -> None:
    assert choose(_gemm(m, n, k), _TARGET, Knobs(pack_b=True) if asks == "C" else Knobs()).asks == asks


def test_nothing_is_asked_for_where_products_and_loads_fill_the_front_end() -> None:
    narrow = replace(targets()["avx2"], caches=_TARGET.caches)
    assert choose(_gemm(2048, 2048, 2048), narrow).asks == ""
    wide = replace(narrow, core=replace(narrow.core, width=6.0))
    assert choose(_gemm(2048, 2048, 2048), wide).asks == "CA"


def test_rows_of_a_packed_a_are_asked_for_where_all_of_them_are_there() -> None:
    whole = choose(_gemm(1024, 1024, 1024, a_columns=True), _TARGET)
    assert (whole.whole_a, whole.asks) == (True, "CA")
    block = choose(_gemm(1024, 240, 400, a_columns=True), _TARGET)
    assert (block.pack_a, block.whole_a, block.asks) == (True, False, "C")


def test_loops_and_sums_ask_for_other_things() -> None:
    gemm = _gemm(512, 512, 512)
    assert not choose(replace(gemm, sums=((0, 0), (512, 512))), _TARGET).asks
