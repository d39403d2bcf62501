"""Convolutions on vectors with sliced copies of operands, or with interleaved sums."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

import tlx
from tests.semantics.contraction.decisions import deciding, stage1, with_costs
from tests.semantics.contraction.test_vnni_inputs import Case, evaluated
from tests.semantics.to_2d.contract import check_contract, poisoned
from tlx.ir.parser.module import parse
from tlx.lower.pipeline import lower
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
    Case(F32, 24, 16, (14, 10), (3, 3), has_epilogue=True),
    Case(F32, 16, 8, (13, 11), (3, 3), strides=(2, 2)),
    Case(F32, 32, 17, (15, 12), (2, 2), strides=(3, 1), holes=(2, 0)),
]
_NEAR = 32 << 10


def check(case: Case, target: Target, found: str) -> None:
    """Check a case after stage 1, after all stages, and as machine code."""
    expected = evaluated(case, parse(case.text))
    module = stage1(case.text, target)
    check_contract(module)
    assert found in str(module)
    np.testing.assert_array_equal(expected, evaluated(case, module))
    np.testing.assert_array_equal(expected, evaluated(case, poisoned(module)))
    np.testing.assert_array_equal(expected, evaluated(case, lower(parse(case.text), target)))
    arguments = case.inputs()
    native = replace(find_target("native"), block_costs=target.block_costs)
    tlx.compile(case.text, native, opt_level=0)(*arguments)
    np.testing.assert_array_equal(expected, arguments[2])


def by_interleaved_sums(target: str, **costs: object) -> Target:
    """A target on which loops for each product of a sum cost too much, so that the products are interleaved."""
    return with_costs(
        target,
        term_register_cycles=1e9,
        product_cycles=1e9,
        transposed_product_cycles=0,
        line_crossing_load_cycles=0,
        factor_cycles=0,
        **costs,
    )


@pytest.mark.parametrize(("case", "target"), [*((case, "avx512") for case in CASES), (CASES[0], "avx2")])
def test_interleaved_sums_mean_the_same(case: Case, target: str) -> None:
    check(case, by_interleaved_sums(target), ".buf")


@pytest.mark.parametrize("case", CASES)
def test_sliced_copies_of_filters_mean_the_same(case: Case) -> None:
    """The caches are so small that copies are sliced."""
    check(
        case,
        deciding(case.text, find_target("avx512"), "%w.buf", "part.loop", cached_operand_bytes=_NEAR),
        "part.loop",
    )


def _with_copies_of(most: int) -> Target:
    """AVX-512 whose copies of inputs have at most a number of bytes, and whose tiles cost nothing."""
    return by_interleaved_sums(
        "avx512",
        cached_operand_bytes=most,
        max_whole_copy_bytes=most,
        max_partial_copy_bytes=most,
        set_conflict_pitch_bytes=32,
        tile_cycles=0,
        narrow_tile_cycles=0,
    )


@pytest.mark.parametrize("case", TALL)
def test_sliced_copies_of_images_mean_the_same(case: Case) -> None:
    """The copy has channels innermost and padding between pixels, and is made for a few rows of the result at a time.

    Transposing costs nothing, so that the image is copied although the caches are so small.
    """
    _, _, rows, columns = case.shapes[0]
    size = 4 * int(np.prod(case.shapes[0]))
    most = size * (rows // 2 + case.strides[0]) // rows * (columns + 2) // columns
    target = _with_copies_of(most)
    match = re.search(r"%last.buf = alloca \[(\d+) x float\]", str(stage1(case.text, target)))
    assert match is not None
    assert 4 * int(match[1]) < size
    check(case, target, "part.loop")


def test_images_are_copied_one_after_the_other() -> None:
    """Copies of rows would overlap too much."""
    case = Case(F32, 16, 8, (13, 11), (3, 3), strides=(2, 2), images=2)
    most = 13 << 10
    target = _with_copies_of(most)
    match = re.search(r"%last.heap = .*@malloc\(i64 (\d+)\)", str(stage1(case.text, target)))
    assert match is not None
    padded_pixel = 2 * 16 * 4
    assert int(match[1]) < 2 * 13 * 11 * padded_pixel
    check(case, target, "part.loop")
