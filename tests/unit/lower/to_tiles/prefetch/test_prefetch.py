"""Tiles prefetch C, A and B of the next tiles if these miss L2 and the front end has room."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from tests.support.product_texts import product_text
from tlx.evaluate import Machine
from tlx.ir.parser.module import parse
from tlx.lower.knobs import FixedKnobs, Knobs
from tlx.lower.options import Options
from tlx.lower.pipeline import lower
from tlx.lower.remarks import Remarks
from tlx.target.costs.memory import Caches
from tlx.target.installed import targets
from tlx.target.target import Target

_TARGET = replace(targets()["avx512"], caches=Caches(48 << 10, 2 << 20, 64 << 20))


def _prefetched(text: str, target: Target = _TARGET) -> str:
    """What tiles prefetch for the next ones, by the remark on a product."""
    remarks = Remarks()
    lower(parse(text), target, options=Options(remarks=remarks, stop_after="to-tiles", verify_each=False))
    (message,) = (remark.message for remark in remarks if remark.message.startswith("matmul"))
    match = re.search(r"([ABC](?: and [ABC])*) of the next tiles? prefetched", message)
    return match[1] if match else ""


@pytest.mark.parametrize(
    ("m", "n", "k", "operands"),
    [
        pytest.param(256, 256, 256, "", id="all stays in L2"),
        pytest.param(512, 512, 512, "C and A", id="a panel of B stays near"),
        pytest.param(3136, 64, 576, "C and A", id="many rows"),
        pytest.param(128, 3136, 256, "C and B", id="A stays near"),
        pytest.param(3136, 256, 32, "", id="tiles are over before a line arrives"),
    ],
)
def test_operands_that_miss_l2_are_prefetched(m: int, n: int, k: int, operands: str) -> None:
    assert _prefetched(product_text(m, n, k)) == operands


def test_nothing_is_prefetched_if_products_and_loads_saturate_the_front_end() -> None:
    core = targets()["avx2"].core
    by_one = replace(core, limits=replace(core.limits, k_loop=replace(core.limits.k_loop, min_unroll=1)))
    narrow = replace(targets()["avx2"], caches=_TARGET.caches, core=by_one)
    assert _prefetched(product_text(2048, 2048, 2048), narrow) == ""
    wide = replace(narrow, core=replace(by_one, issue_width=6.0))
    assert _prefetched(product_text(2048, 2048, 2048), wide) == "C and A"


def test_several_steps_in_an_iteration_leave_room_for_prefetches() -> None:
    assert _prefetched(product_text(2048, 2048, 2048), replace(targets()["avx2"], caches=_TARGET.caches)) == "C and A"


def test_rows_of_a_fully_packed_a_are_prefetched() -> None:
    assert _prefetched(product_text(1024, 1024, 1024, a_columns=True)) == "C and A"
    assert _prefetched(product_text(1024, 240, 400, a_columns=True)) == "C"


@pytest.mark.parametrize(("m", "n", "k"), [(36, 150, 80), (35, 160, 81)])
def test_sums_are_complete_if_k_is_split_for_prefetches(m: int, n: int, k: int) -> None:
    small = replace(_TARGET, caches=Caches(16 << 10, 24 << 10, 64 << 20))
    module = lower(parse(product_text(m, n, k)), small)
    assert "piece.loop:" in str(module)
    random = np.random.default_rng(m)
    a, b = (random.integers(-8, 9, shape).astype(np.float32) for shape in ((m, k), (k, n)))
    c = np.full((m, n), 7, np.float32)
    Machine(module).call("f", c, a, b)
    np.testing.assert_array_equal(c, a @ b)


@pytest.mark.parametrize("added", [False, True])
def test_parts_prefetch_rows_of_what_the_epilogue_reads(*, added: bool) -> None:
    """Each part prefetches a row of the next tile of C, two or three lines, and one of the matrix that is added."""
    text = product_text(128, 3136, 256)
    if added:
        sums = "  %r = load <401408 x float>, ptr %d, align 4\n  %s = fadd <401408 x float> %m, %r\n"
        text = text.replace("ptr %b)", "ptr %b, ptr noalias %d)").replace("  %t = ", f"{sums}  %t = ")
        text = text.replace("(<401408 x float> %m, <2", "(<401408 x float> %s, <2")
    options = Options(stop_after="to-tiles", verify_each=False, knobs=FixedKnobs(Knobs(tile=(8, 48))))
    lowered = str(lower(parse(text), _TARGET, options=options))
    begun = re.findall(r"(?ms)^part\.loop[\d.]*:.*?^piece\.loop", lowered)
    assert {part.count("@llvm.prefetch") for part in begun} == ({4, 6} if added else {2, 3})
