"""Strides of operands between iterations of a loop, and prefetching and stores that depend on them."""

from __future__ import annotations

from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest

import tlx
from tlx.bench.workloads.products import batch
from tlx.ir.control_flow import FunctionLoops
from tlx.ir.parser.module import parse_fully
from tlx.ir.types import FLOAT, PTR
from tlx.ir.values import Local
from tlx.lower.options import Options
from tlx.lower.remarks import Remarks
from tlx.lower.to_tiles.expression import MatrixView
from tlx.lower.to_tiles.match.batch_loops import BatchLoops
from tlx.lower.to_tiles.prefetch import batch_prefetch_distance, batch_prefetch_locality
from tlx.lower.to_tiles.problem import BatchStrides
from tlx.target.costs.memory import Caches
from tlx.target.lookup import find_target

_LOOP = """
define void @f(ptr %a, ptr %same, i64 %n) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %rows = mul i64 %i, 64
  %behind = add i64 %rows, 8
  %x = getelementptr float, ptr %a, i64 %behind
  %run = mul i64 %i, %n
  %y = getelementptr float, ptr %a, i64 %run
  %next = add i64 %i, 1
  %again = icmp slt i64 %next, 100
  br i1 %again, label %loop, label %end, !tlx.independent !{}
end:
  ret void
}
"""


def _batch(names: list[str], view: MatrixView) -> BatchStrides | None:
    module = parse_fully(_LOOP)
    function = module.functions[0]
    return BatchLoops(module, FunctionLoops(function)).batch(
        function.block("loop"), [(Local(PTR, name), view) for name in names]
    )


def test_strides_are_bytes_between_iterations() -> None:
    """Loop-invariant operands, and those with a run-time stride, are not prefetched."""
    actual = _batch(["x", "x", "same", "y"], MatrixView(FLOAT, 8, 8, 8, 1))
    assert actual == BatchStrides((256, 256, 0, 0), (256, 256, 256, 256), 2 * 256 * 100)
    assert actual is not None
    assert actual.read == ((1, 256, 256),)


def test_matrices_with_gaps_are_not_prefetched() -> None:
    """Their lines are not contiguous."""
    actual = _batch(["x", "x"], MatrixView(FLOAT, 8, 8, 16, 1))
    assert actual is not None
    assert actual.read == ()


def test_no_strides_outside_of_loops() -> None:
    """A product alone has no next one."""
    module = parse_fully(_LOOP)
    assert BatchLoops(module, FunctionLoops(module.functions[0])).batch(module.functions[0].entry, []) is None


def test_attributes_mark_functions_that_are_called_in_a_loop() -> None:
    """The trip count is unknown, and so are the bytes of all iterations and where results are stored."""
    text = """
define void @f(ptr %a, i64 %group) "tlx-rounds"="group" {
  %row = mul i64 %group, 64
  %x = getelementptr float, ptr %a, i64 %row
  ret void
}
"""
    module = parse_fully(text)
    rounds, view = BatchLoops(module, FunctionLoops(module.functions[0])), MatrixView(FLOAT, 8, 8, 8, 1)
    pointers = [(Local(PTR, name), view) for name in ("x", "x", "a")]
    actual = rounds.batch(module.functions[0].entry, pointers)
    assert actual == BatchStrides((0, 256, 0), (256,) * 3, None)
    assert batch_prefetch_locality(actual, find_target("avx512").caches)
    assert actual is not None
    assert not actual.exceeds_caches(find_target("avx512").caches, find_target("avx512").memory)


@pytest.mark.parametrize(
    ("size", "rounds", "fetch", "past"),
    [(256, 100, 0, False), (1 << 10, 5000, 3, False), (4 << 10, 10000, 3, True), (64 << 10, 1000, 2, True)],
)
def test_prefetching_depends_on_the_caches(size: int, rounds: int, fetch: int, past: bool) -> None:
    """A, B and C of `size` bytes each, in `rounds` iterations."""
    target, strides = find_target("avx512"), BatchStrides((size,) * 3, (size,) * 3, 3 * size * rounds)
    assert batch_prefetch_locality(strides, target.caches) == fetch
    assert strides.exceeds_caches(target.caches, target.memory) is past


@pytest.mark.parametrize(
    ("l3", "sharers", "past"), [(480, 2, False), (320, 16, True), (24, 16, True), (32, 1, False), (8, 1, True)]
)
def test_results_within_a_share_of_the_last_cache_are_stored_normally(l3: int, sharers: int, past: bool) -> None:
    """30 MB stay there where a processor's share is 32 MB at least."""
    target = replace(find_target("avx512"), caches=Caches(48 << 10, 2 << 20, l3 << 20, sharers))
    large, small = (BatchStrides((1 << 10,) * 3, (1 << 10,) * 3, size << 20) for size in (30, 15))
    assert large.exceeds_caches(target.caches, target.memory) is past
    assert small.exceeds_caches(target.caches, target.memory) is (l3 < 15)


@pytest.mark.parametrize(("size", "rounds"), [(64, 32), (256, 8), (1 << 10, 2), (2 << 10, 1), (64 << 10, 1)])
def test_short_iterations_prefetch_further_ahead(size: int, rounds: int) -> None:
    """A, B and C of so many bytes each: 6 KB are on their way, where the first cache holds what they read."""
    target, strides = find_target("avx512"), BatchStrides((size,) * 3, (size,) * 3, None)
    assert batch_prefetch_distance(strides, target.caches, target.memory) == rounds
    small = replace(target, caches=replace(target.caches, l1=8 * size))
    assert batch_prefetch_distance(strides, small.caches, small.memory) <= 2


def test_matrix_units_prefetch_for_the_next_iteration() -> None:
    """16 x 16 x 16 bfloat moves 2 KB a round."""
    remarks = Remarks()
    tlx.compile(batch("bf16", 10000, (16, 16, 16)).text(), "amx", options=Options(emulate_matrix=True, remarks=remarks))
    assert any("the next iteration's operands prefetched" in remark.message for remark in remarks)


def test_operands_that_stay_do_not_count_as_moved() -> None:
    """A is the same in all rounds, and nothing is known of C's."""
    target = find_target("avx512")
    assert batch_prefetch_distance(BatchStrides((0, 0, 512), (512,) * 3, None), target.caches, target.memory) == 12
    assert batch_prefetch_distance(BatchStrides((0, 0, 0), (512,) * 3, None), target.caches, target.memory) == 1


@pytest.mark.parametrize("offset", [0, 1])
def test_results_stored_non_temporally(offset: int) -> None:
    """Aligned results are written by non-temporal stores, others by ordinary ones: both are right."""
    count, n = 3000, 32
    compiled = tlx.compile(batch("f32", count, (n, n, n)).text(), "native")
    random = np.random.default_rng(1)
    a, b = (random.standard_normal((count, n, n), np.float32) for _ in range(2))
    memory = np.zeros(count * n * n + 32, np.float32)
    start = -memory.ctypes.data % 64 // 4 + offset
    c = memory[start : start + count * n * n].reshape(count, n, n)
    compiled(c, a, b)
    np.testing.assert_allclose(c, a @ b, atol=1e-4)
    assert not memory[:start].any()
    assert not memory[start + c.size :].any()


@pytest.mark.parametrize("offset", [0, 1])
def test_sums_of_tile_products_stored_non_temporally(offset: int) -> None:
    """No tile goes there, vectors do: aligned results and others, by a model whose caches hold one round."""
    count, n = 12, 32
    target = replace(find_target("amx"), caches=Caches(l1=16 << 10, l2=32 << 10, l3=64 << 10))
    options = Options(emulate_matrix=True, remarks=Remarks())
    compiled = tlx.compile(batch("bf16", count, (n, n, n)).text(), target, options=options)
    assert any("non-temporal stores" in remark.message for remark in options.remarks or ())
    random = np.random.default_rng(2)
    a, b = (random.integers(-9, 9, (count, n, n)).astype(ml_dtypes.bfloat16) for _ in range(2))
    memory = np.zeros(count * n * n + 32, np.float32)
    start = -memory.ctypes.data % 64 // 4 + offset
    c = memory[start : start + count * n * n].reshape(count, n, n)
    compiled(c, a, b)
    np.testing.assert_array_equal(c, a.astype(np.float32) @ b.astype(np.float32))
    assert not memory[:start].any()
    assert not memory[start + c.size :].any()
