"""Decisions of stage 2: register tiles fit the registers, and blocks cover every product exactly once."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace

import pytest

from tlx.ir.types import BFLOAT, DOUBLE, FLOAT, HALF, I8, I16, I32, I64, Type
from tlx.lower.cost import RegisterTileProblem, register_tile
from tlx.lower.operations import MMA_NAMES
from tlx.lower.to_tiles.expression import MatrixView
from tlx.lower.to_tiles.problem import BatchStrides, Gemm
from tlx.lower.to_tiles.select.recipe import EqualTiles, Recipe, column_ranges, k_passes, row_ranges
from tlx.lower.to_tiles.select.selection import select
from tlx.target.costs.core import CoreModel
from tlx.target.installed import targets
from tlx.target.instructions.dots import Sign
from tlx.target.target import Target

TARGETS = targets()
TYPES: list[tuple[Type, Type]] = [
    (FLOAT, FLOAT),
    (DOUBLE, DOUBLE),
    (HALF, HALF),
    (HALF, FLOAT),
    (BFLOAT, BFLOAT),
    (BFLOAT, FLOAT),
    (I8, I32),
    (I8, I64),
    (I8, I8),
    (I16, I32),
    (I32, I32),
    (I64, I64),
]


def _view(element: Type, rows: int, cols: int, *, column_major: bool = False, spare: int = 0) -> MatrixView:
    strides = (1, rows + spare) if column_major else (cols + spare, 1)
    return MatrixView(element, rows, cols, *strides)


def _gemm(m: int, n: int, k: int, element: Type = FLOAT, result: Type = FLOAT, **how: bool) -> Gemm:
    sign: Sign = "s" if element in (I8, I16, I32, I64) else "f"
    a = _view(element, m, k, column_major=how.get("a_columns", False))
    b = _view(element, k, n, column_major=how.get("b_columns", False))
    acc = _view(result, m, n) if how.get("acc") else None
    return Gemm(a, b, _view(result, m, n), acc, sign, sign)


def _random_gemm(rng: random.Random) -> Gemm:
    element, result = rng.choice(TYPES)
    m, n, k = (rng.choice((1, 2, 3, 7, 16, 17, 31, 64, 100, rng.randint(1, 3000))) for _ in range(3))
    spare = rng.choice((0, 0, 1, 24))
    signs: tuple[Sign, Sign] = ("f", "f")
    if element in (I8, I16, I32, I64):
        signs = rng.choice((("s", "s"), ("u", "u"), ("u", "s"), ("s", "u")))
    a = _view(element, m, k, column_major=rng.random() < 0.3, spare=spare)
    b = _view(element, k, n, column_major=rng.random() < 0.3, spare=spare)
    acc = _view(result, m, n, spare=spare) if rng.random() < 0.3 else None
    return Gemm(a, b, _view(result, m, n), acc, *signs)


def _covered(ranges: list[EqualTiles]) -> list[int]:
    """Every position that holds data, in order of the tiles."""
    return [r.start + t * r.size + i for r in ranges for t in range(r.count) for i in range(r.valid)]


def _check(gemm: Gemm, recipe: Recipe, target: Target) -> None:
    for ranges, extent in ((row_ranges(gemm, recipe), gemm.m), (column_ranges(gemm, recipe), gemm.n)):
        covered = _covered(ranges)
        once = recipe.mma.unit != "matrix" or not gemm.is_repeatable
        assert (covered if once else sorted(set(covered))) == list(range(extent))
    assert _covered(k_passes(gemm, recipe)) == list(range(gemm.k))
    assert all(r.size <= recipe.tile.mr for r in row_ranges(gemm, recipe))
    assert all(r.size <= recipe.tile.nr for r in column_ranges(gemm, recipe))
    assert recipe.blocks.kc % recipe.tile.kstep == 0 or recipe.blocks.kc == gemm.k
    assert recipe.tile.nr % recipe.tile.lanes == 0
    assert recipe.blocks.mc >= 1
    assert recipe.blocks.nc >= 1
    if recipe.mma.unit == "matrix":
        assert target.matrix is not None
        kind = target.matrix.kind_for(str(recipe.mma.operand_a), str(recipe.mma.accumulator))
        rows, columns = recipe.tile.mr // kind.rows, recipe.tile.nr // kind.columns
        operands = (min(rows, 2) + min(columns, 2)) * kind.operands_take_tiles
        assert rows * columns + operands <= kind.registers
        assert 0 < recipe.efficiency <= 1
        assert recipe.packing.b or recipe.mma.width == 1
        return
    vectors = recipe.tile.nr // recipe.tile.lanes
    assert recipe.tile.mr * vectors + min(recipe.tile.mr, vectors) + 1 <= target.registers
    assert recipe.tile.lanes * (target.vector_bytes // recipe.tile.lanes) == target.vector_bytes
    assert recipe.mma.width == 1 or recipe.packing.b or recipe.tile.streamed_rows
    if recipe.tile.streamed_rows:
        assert gemm.m == recipe.tile.mr <= 8
        assert recipe.tile.streamed_rows % recipe.mma.width == 0
        granule = recipe.tile.lanes * recipe.tile.column_permutation[0]
        assert all(r.size % granule == 0 for r in column_ranges(gemm, recipe))
        return
    assert recipe.packing.b or (gemm.b.is_row_major and recipe.mma.operand_b == gemm.b.element)
    assert recipe.packing.a or recipe.mma.operand_a == gemm.a.element
    if recipe.mma.correction != "none":
        assert recipe.mma.name == "usmma"
    elif str(recipe.mma.operand_a) == "i16" != str(gemm.a.element):
        assert recipe.mma.name == "smma"  # bytes of any sign, widened
    else:
        assert recipe.mma.name == MMA_NAMES[gemm.lhs_sign, gemm.rhs_sign]


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("seed", range(4))
def test_random_products_fit_and_are_covered_once(name: str, seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(40):
        gemm = _random_gemm(rng)
        _check(gemm, select(gemm, TARGETS[name]), TARGETS[name])


@pytest.mark.parametrize("m", [1, 4])
@pytest.mark.parametrize(
    ("element", "result", "orders"),
    [
        (BFLOAT, FLOAT, {"avx512": (2, 4), "amx": (2, 1)}),  # by dot products; as float, where they are slow
        (HALF, FLOAT, {"avx512": (1, 1), "amx": (1, 1)}),
        (I8, I32, {"avx512": (4, 4), "amx": (4, 4)}),
        (FLOAT, FLOAT, {"avx512": (1, 1), "amx": (1, 1)}),
    ],
)
def test_few_rows_stream_b(m: int, element: Type, result: Type, orders: dict[str, tuple[int, int]]) -> None:
    for name, order in orders.items():
        recipe = select(_gemm(m, 1024, 2048, element, result), TARGETS[name])
        assert (recipe.tile.streamed_rows > 4, recipe.packing.b, recipe.tile.column_permutation) == (True, False, order)


def test_a_b_that_is_packed_for_several_products_does_not_stream() -> None:
    for gemm in (_gemm(1, 512, 512, BFLOAT, FLOAT), _gemm(4, 512, 512, I8, I32)):
        assert select(gemm, TARGETS["amx"]).tile.streamed_rows > 0
        for packings in (0.0, 0.01):
            recipe = select(replace(gemm, packs_per_product=packings), TARGETS["amx"])
            assert (recipe.packing.prepacked_b, recipe.tile.streamed_rows) == (True, 0)


def test_many_rows_and_cached_floats_use_register_tiles() -> None:
    for m, k in ((32, 2048), (4, 64), (2, 16)):
        assert select(_gemm(m, 64, k), TARGETS["avx512"]).tile.streamed_rows == 0


@pytest.mark.parametrize(("element", "result", "rows"), [(FLOAT, FLOAT, 1), (BFLOAT, FLOAT, 1), (FLOAT, FLOAT, 8)])
def test_panels_from_memory_are_prefetched_within_a_third_of_l1(element: Type, result: Type, rows: int) -> None:
    target = TARGETS["avx512"]
    recipe = select(replace(_gemm(rows, 4096, 4096, element, result), packs_per_product=0.0), target)
    step = recipe.tile.kstep * recipe.tile.nr * (2 if element == BFLOAT else 4)
    assert recipe.packing.b
    assert recipe.prefetch.b_steps >= target.core.limits.prefetch.b_steps
    assert recipe.prefetch.b_steps == target.core.limits.prefetch.b_steps or (
        recipe.prefetch.b_steps * step <= target.caches.l1 // 3
    )


@pytest.mark.parametrize("registers", [8, 16, 32])
@pytest.mark.parametrize("spare", [False, True])
def test_register_tiles_leave_room_for_operands(registers: int, spare: bool) -> None:
    for m in (1, 2, 3, 5, 8, 13, 100):
        for n in (1, 4, 15, 16, 17, 48, 1000):
            mr, nv = register_tile(RegisterTileProblem(m, n, 16), registers, CoreModel(), spare=spare)
            assert 1 <= mr <= max(m, 1)
            assert nv >= 1
            assert mr * nv + min(mr, nv) + 1 + spare <= registers


def test_rows_are_split_evenly() -> None:
    gemm = _gemm(100, 28, 4)
    ranges = row_ranges(gemm, select(gemm, TARGETS["avx512"]))
    assert Counter({r.size: r.count for r in ranges}) == {13: 4, 12: 4}


@pytest.mark.parametrize(
    ("k", "passes"),
    [(1, [1]), (2048, [2048]), (2049, [1025, 1024]), (4096, [2048, 2048]), (6000, [2000, 2000, 2000])],
)
def test_passes_over_k_are_equal(k: int, passes: list[int]) -> None:
    gemm = _gemm(4, 16, k)
    ranges = k_passes(gemm, select(gemm, TARGETS["avx512"]))
    assert [r.size for r in ranges for _ in range(r.count)] == passes
    assert not any(r.padding for r in ranges)


def test_k_is_whole_where_the_result_cannot_hold_the_sums() -> None:
    gemm = _gemm(4, 16, 6000, BFLOAT, BFLOAT)
    assert select(gemm, TARGETS["generic"]).blocks.kc == 6000


@pytest.mark.parametrize(
    ("target", "element", "result", "unit", "operand", "accumulator", "width"),
    [
        ("generic", BFLOAT, FLOAT, "fma", FLOAT, FLOAT, 1),
        ("generic", I8, I32, "fma", I32, I32, 1),
        ("generic", HALF, HALF, "fma", FLOAT, FLOAT, 1),
        ("avx2", BFLOAT, FLOAT, "fma", FLOAT, FLOAT, 1),
        ("avx512", BFLOAT, FLOAT, "dot", BFLOAT, FLOAT, 2),
        ("avx512", BFLOAT, BFLOAT, "dot", BFLOAT, FLOAT, 2),
        ("avx512", I8, I32, "dot", I8, I32, 4),
        ("avx512", I16, I32, "dot", I16, I32, 2),
        ("avx2", I8, I32, "dot", I16, I32, 2),
        ("generic", I16, I32, "fma", I32, I32, 1),
        ("avx512", DOUBLE, DOUBLE, "fma", DOUBLE, DOUBLE, 1),
        ("amx", BFLOAT, FLOAT, "matrix", BFLOAT, FLOAT, 2),
        ("amx", I8, I32, "matrix", I8, I32, 4),
        ("amx", I32, I32, "fma", I32, I32, 1),
        ("amx", FLOAT, FLOAT, "fma", FLOAT, FLOAT, 1),
    ],
)
def test_types_choose_the_unit(
    target: str, element: Type, result: Type, unit: str, operand: Type, accumulator: Type, width: int
) -> None:
    recipe = select(_gemm(64, 64, 64, element, result), TARGETS[target])
    chosen = (recipe.mma.unit, recipe.mma.operand_a, recipe.mma.operand_b, recipe.mma.accumulator, recipe.mma.width)
    assert chosen == (unit, operand, operand, accumulator, width)


def test_bytes_are_summed_in_32_bits_if_sums_fit() -> None:
    assert select(_gemm(8, 16, 33024, I8, I64), TARGETS["avx512"]).mma.accumulator == I32
    assert select(_gemm(8, 16, 33028, I8, I64), TARGETS["avx512"]).mma.accumulator == I64
    assert select(_gemm(8, 16, 32, I8, I64, acc=True), TARGETS["avx512"]).mma.accumulator == I64


def test_kernel_names_tell_sizes_types_and_signs() -> None:
    assert _gemm(3, 4, 5).kernel_name == "tlx.matmul.3x4x5.f32.f32.f32"
    assert _gemm(3, 4, 5, I8, I32).kernel_name == "tlx.matmul.3x4x5.i8.i8.i32.ss"
    assert _gemm(3, 4, 5, BFLOAT, FLOAT).title == "matmul 3x4x5 bfloat -> float"


def test_views_report_their_layout() -> None:
    assert _view(FLOAT, 3, 5, spare=2).size == 19
    assert not _view(FLOAT, 3, 5, column_major=True).is_row_major
    assert MatrixView(FLOAT, 3, 1, 1, 3).is_row_major
    assert _view(FLOAT, 3, 5, column_major=True).layout == "3x5 float column-major"


@pytest.mark.parametrize(("cpu", "unit", "operand"), [("znver5", "dot", BFLOAT), ("sapphirerapids", "fma", FLOAT)])
def test_multiply_adds_replace_slow_dot_products(cpu: str, unit: str, operand: Type) -> None:
    recipe = select(_gemm(64, 64, 64, BFLOAT, FLOAT), TARGETS["avx512"].on_cpu(cpu))
    assert (recipe.mma.unit, recipe.mma.operand_b) == (unit, operand)


@pytest.mark.parametrize(
    ("n", "of_i32", "of_i64"), [(1, 4, 2), (4, 4, 4), (5, 8, 8), (8, 8, 8), (9, 16, 8), (24, 16, 8)]
)
def test_short_rows_take_parts_of_registers(n: int, of_i32: int, of_i64: int) -> None:
    """Halves and quarters are loaded faster than whole ones; the share of the peak stays that of whole ones.

    Of integers: floats fill them by two positions of K.
    """
    recipe = select(_gemm(8, n, 8, I32, I32), TARGETS["avx512"])
    assert recipe.tile.lanes == of_i32
    assert recipe.efficiency <= n / 16 or n > 16
    recipe = select(_gemm(8, n, 8, I64, I64), TARGETS["avx512"])
    assert recipe.tile.lanes == of_i64


def test_loops_configure_a_matrix_unit_once() -> None:
    """So in a loop it takes smaller products than alone, but none of a quarter of a tile."""
    target = TARGETS["amx"].on_cpu("sapphirerapids")
    for n, alone, in_loop in ((8, False, False), (16, False, True), (64, True, True)):
        gemm = _gemm(n, n, n, BFLOAT)
        batch = BatchStrides((4 * n * n, 2 * n * n, 2 * n * n), (4 * n * n, 2 * n * n, 2 * n * n), 8 * n * n * 100)
        assert (select(gemm, target).mma.unit == "matrix") is alone
        assert (select(replace(gemm, batch=batch), target).mma.unit == "matrix") is in_loop


@pytest.mark.parametrize("element", [FLOAT, DOUBLE])
@pytest.mark.parametrize("extent", [512, 1000, 1024, 2048, 4096])
def test_a_block_of_b_stays_in_half_of_the_second_cache(element: Type, extent: int) -> None:
    target = TARGETS["avx512"]
    recipe = select(_gemm(extent, extent, extent, element, element), target)
    size = 4 if element == FLOAT else 8
    row = recipe.blocks.kc * size
    assert recipe.tile.nr * row <= recipe.blocks.nc * row <= target.caches.l2 // 2


def test_row_tiles_are_outermost_unless_a_panel_stays_in_l1() -> None:
    target = TARGETS["avx512"]
    deep, shallow = (select(_gemm(1024, 1024, k), target) for k in (1024, 32))
    assert deep.blocks.mc == deep.tile.mr
    assert shallow.blocks.mc > 8 * shallow.tile.mr


@pytest.mark.parametrize(("n", "k", "apart"), [(512, 512, True), (512, 128, True), (512, 32, False), (32, 64, True)])
def test_a_row_tile_is_packed_right_before_panels_that_come_from_the_second_cache(n: int, k: int, apart: bool) -> None:
    a, b, c = MatrixView(HALF, 512, k, k, 1), MatrixView(HALF, k, n, n, 1), MatrixView(FLOAT, 512, n, n, 1)
    recipe = select(Gemm(a, b, c, None, "f", "f"), TARGETS["avx512"])
    assert recipe.packing.a
    assert (recipe.blocks.mc == recipe.tile.mr) == apart


def test_all_of_a_is_packed_once_where_several_blocks_of_columns_read_it() -> None:
    target = TARGETS["avx512"]
    wide, narrow = (select(_gemm(512, n, k, a_columns=True), target) for n, k in ((1024, 512), (192, 300)))
    assert wide.packing.a
    assert wide.packing.whole_a
    assert narrow.packing.a
    assert not narrow.packing.whole_a


def test_all_of_an_a_that_exceeds_the_last_cache_is_packed_once_rather_than_many_times() -> None:
    small = TARGETS["avx2"]
    large = replace(small, caches=replace(small.caches, l2=1 << 20))
    many = select(_gemm(2048, 1024, 1024, a_columns=True), small)
    few = select(_gemm(2048, 400, 300, a_columns=True), large)
    assert small.caches.l3 // 4 < 2048 * 300 * 4
    assert many.packing.whole_a
    assert few.packing.a
    assert not few.packing.whole_a
    assert few.blocks.nc < 400


@pytest.mark.parametrize(("m", "pack_b"), [(64, False), (128, False), (256, True)])
def test_a_wide_b_is_packed_where_many_rows_meet_it(m: int, pack_b: bool) -> None:
    assert select(_gemm(m, 3136, 256), TARGETS["avx512"]).packing.b == pack_b


@pytest.mark.parametrize(("k", "rows"), [(1000, 64), (1024, 16), (4096, 16)])
def test_rows_that_share_cache_sets_are_fewer_at_a_time(k: int, rows: int) -> None:
    assert select(_gemm(1024, 1, k, I8, I32), TARGETS["amx"]).tile.mr == rows


@pytest.mark.parametrize(("m", "n", "k", "low", "high"), [(16, 1024, 1024, 0.6, 0.8), (1024, 1024, 1024, 0.8, 0.93)])
def test_the_predicted_share_counts_memory_traffic(m: int, n: int, k: int, low: float, high: float) -> None:
    assert low < select(_gemm(m, n, k), TARGETS["avx512"]).efficiency < high
    assert select(_gemm(128, 128, 128), TARGETS["avx512"]).efficiency > 0.88


def test_the_predicted_share_counts_packing_and_lanes_without_data() -> None:
    """8 cubed of bytes: 4 cycles of products (8 with half of the lanes empty), 6 of packing for each of two steps."""
    target = TARGETS["avx512"]
    floats, bytes_ = (select(_gemm(8, 8, 8, *types), target).efficiency for types in ((FLOAT, FLOAT), (I8, I32)))
    assert bytes_ < 0.15
    assert floats > 0.5
    assert select(_gemm(64, 64, 64, I8, I32), target).efficiency > 4 * bytes_
    assert select(_gemm(64, 9, 64), target).efficiency < 0.7
    assert select(_gemm(64, 16, 64), target).efficiency > 0.7


def test_the_predicted_share_counts_l2_traffic() -> None:
    """A row times 512x512 floats, 1 MB: 32768 cycles of lines, 8192 of multiply-adds."""
    assert select(_gemm(1, 512, 512), TARGETS["amx"]).efficiency <= 0.25


@pytest.mark.parametrize(
    ("element", "sign", "n", "k", "packs"),
    [
        (BFLOAT, "f", 64, 64, False),
        (BFLOAT, "f", 40, 64, True),  # half a register
        (BFLOAT, "f", 1024, 1024, True),  # pairs of rows a page apart
        (I8, "u", 64, 64, False),
        (I8, "s", 64, 64, True),  # columns are summed
    ],
)
def test_interleaved_rows_are_read_in_place(element: Type, sign: Sign, n: int, k: int, packs: bool) -> None:
    width = 2 if element == BFLOAT else 4
    b = MatrixView(element, k, n, n, width, width, n)
    to = _view(FLOAT if element == BFLOAT else I32, 512, n)
    recipe = select(Gemm(_view(element, 512, k), b, to, None, sign, "f" if sign == "f" else "s"), TARGETS["avx512"])
    assert (recipe.mma.unit, recipe.mma.width, recipe.packing.b) == ("dot", width, packs)


@pytest.mark.parametrize(
    ("n", "k", "result", "asks"),
    [(128, 128, I32, True), (128, 64, I32, True), (256, 256, I32, False), (64, 64, I32, False), (512, 128, I32, True)],
)
def test_results_are_prefetched_if_stores_take_longer_than_products(
    n: int, k: int, result: Type, *, asks: bool
) -> None:
    """Not where they stay in the first cache, nor where four steps of K hide them."""
    assert select(_gemm(n, n, k, I8, result), TARGETS["amx"]).stores.prefetches_lines is asks


@pytest.mark.parametrize(("n", "k"), [(768, 3072), (768, 768), (3072, 768), (4096, 4096)])
def test_threads_share_the_panels_of_one_row(n: int, k: int) -> None:
    """Panels of floats that were packed before all calls are narrow: there are at least 16 of them."""
    gemm = replace(_gemm(1, n, k), packs_per_product=0.0)
    recipe = select(gemm, TARGETS["avx512"])
    assert recipe.packing.b
    assert sum(columns.count for columns in column_ranges(gemm, recipe)) >= 16


@pytest.mark.parametrize(("terms", "distance", "prefetches"), [(1, 0, False), (9, 96 * 96, True), (9, 1, False)])
def test_a_panel_has_rows_of_all_terms(terms: int, distance: int, prefetches: bool) -> None:
    """52x96x96 of floats with AVX2: 6 KB a panel, or 54 KB, of which L1 holds 32, or 9 KB where terms overlap."""
    offsets = tuple((96 * term, distance * term) for term in range(terms))
    gemm = replace(_gemm(52, 96, 96), term_offsets=offsets, packs_per_product=0)
    assert (select(gemm, TARGETS["avx2"]).prefetch.b_steps > 0) is prefetches
