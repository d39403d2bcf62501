"""The partition of work among threads: every tile belongs to one thread, and the load is balanced."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import pytest

from tests.support.product_texts import product_text
from tlx.diagnostics import TlxError
from tlx.evaluate import Machine
from tlx.evaluate.teams import ThreadTeam
from tlx.ir.builder import Builder, Thread, new_function
from tlx.ir.parser.module import parse, parse_fully
from tlx.ir.types import BFLOAT, FLOAT, I32, I64, PTR, VOID, Type
from tlx.ir.values import Value, const_int
from tlx.lower.options import Options
from tlx.lower.pipeline import lower
from tlx.lower.to_tiles.expression import Expression, MatrixLeaf, MatrixView, ProductLeaf, may_alias_leaf
from tlx.lower.to_tiles.parallel.partition import (
    ParallelCost,
    ProblemPartition,
    ThreadShare,
    gemm_parallel_cost,
    partition_problem,
)
from tlx.lower.to_tiles.parallel.stealing import ThreadShares, emit_stealing
from tlx.lower.to_tiles.parallel.team import TeamKernels, run_in_shares
from tlx.lower.to_tiles.parallel.worksharing import LoopCosts, parallelise_nests
from tlx.lower.to_tiles.problem import Copy, Elementwise, Gemm, Reduction, RowFusion, RowFusionPart
from tlx.lower.to_tiles.select.elementwise import store_alignment
from tlx.lower.to_tiles.select.recipe_cost import cost
from tlx.lower.to_tiles.select.selection import select
from tlx.target.lookup import find_target

PART: Final = re.compile(r"define (internal void @(\S+\.part[.\d]*)\(.*?\)) nounwind.*?\n}", re.DOTALL)


@dataclass(frozen=True)
class Call:
    """What a kernel is called with: whether it only packs, the part, and where its panels are, if it keeps them."""

    packs: bool
    part: tuple[int, int, int, int]
    memory: int | None = None
    packed: bool = False


def calls_of(m: int, n: int, k: int, team: ThreadTeam, machine: tuple[str, str] = ("avx512", "float")) -> list[Call]:
    """What a team does, in order; parts are first and last row, and column."""
    options = Options(stop_after="to-tiles", threads="openmp", thread_cycles=0)
    target, element = machine
    program = product_text(m, n, k, element, result="i32" if element == "i8" else "float")
    text = str(lower(parse(program), target, options=options))
    calls: list[Call] = []

    def part(name: str, *, keeps: bool) -> Callable[..., None]:
        def called(*arguments: int) -> None:
            *_, row, row_end, column, column_end = arguments[:-2] if keeps else arguments
            memory, packed = arguments[-2:] if keeps else (None, 0)
            calls.append(Call(".pack." in name, (row, row_end, column, column_end), memory, packed != 0))

        return called

    matches = list(PART.finditer(text))
    for match in matches:
        text = text.replace(match[0], "declare " + re.sub(r" %[\w.]+|noalias|internal ", "", match[1]))
    foreign = {match[2]: part(match[2], keeps="%packed" in match[1]) for match in matches}
    Machine(parse(text), foreign=foreign, team=team).call("f", *(np.zeros(1, np.float32) for _ in range(3)))
    return calls


def parts_of(m: int, n: int, k: int, threads: int) -> list[tuple[int, int, int, int]]:
    """The rectangles of tiles that a team multiplies: first and last row, first and last column."""
    return [call.part for call in calls_of(m, n, k, ThreadTeam(threads)) if not call.packs]


@pytest.mark.parametrize("threads", [1, 2, 3, 5, 7, 8, 16, 23])
@pytest.mark.parametrize("shape", [(256, 256, 64), (512, 40, 8), (6, 2000, 32), (100, 300, 1000)])
def test_grid_covers_every_tile_once(shape: tuple[int, int, int], threads: int) -> None:
    (_, rows, _, columns) = parts_of(*shape, 1)[0]
    tiles = np.zeros((rows, columns), int)
    parts = parts_of(*shape, threads)
    for row, row_end, column, column_end in parts:
        tiles[row:row_end, column:column_end] += 1
    assert (tiles == 1).all()
    if threads > 1:  # a job is a quarter of a thread's share, or a tile
        largest = max((row_end - row) * (column_end - column) for row, row_end, column, column_end in parts)
        assert largest <= max(1, -(-rows * columns // threads) * 0.45)


@pytest.mark.parametrize("threads", [1, 3, 4, 7, 16])
def test_many_threads_pack_each_panel_once(threads: int) -> None:
    """All panels are packed before the first one is read; with few threads, each packs what it reads."""
    calls = calls_of(2048, 2048, 512, ThreadTeam(threads))
    packs = [call.packs for call in calls]
    assert packs == sorted(packs, reverse=True)
    panels = [panel for call in calls if call.packs for panel in range(*call.part[2:])]
    columns = max(call.part[3] for call in calls if not call.packs)
    assert panels == (list(range(columns)) if threads >= 4 else [])


@pytest.mark.parametrize("team", [ThreadTeam(4), ThreadTeam(4, reverse_order=True), ThreadTeam(16)])
def test_threads_reuse_the_panels_that_they_packed(team: ThreadTeam) -> None:
    """The first thread runs all jobs, first those that read the same panels, and packs each block of panels once."""
    calls = calls_of(1024, 1024, 1024, team, ("amx", "bfloat"))
    held = (0, 0)
    packed: list[tuple[int, int]] = []
    for call in calls:
        columns = call.part[2:]
        assert call.packed == (held == columns)
        if not call.packed:
            packed.append(columns)
        held = columns
    assert len({call.memory for call in calls}) == 1
    assert len(packed) == len(set(packed)) >= 2
    assert sorted(panel for columns in packed for panel in range(*columns)) == list(range(32))
    assert len(calls) >= 6 * team.max_threads


def test_few_rows_of_tiles_are_not_split_along_m() -> None:
    """Nor is B of 256 KB packed at all."""
    assert not any(
        call.packs for shape in ((512, 256, 256), (16, 2048, 2048)) for call in calls_of(*shape, ThreadTeam(16))
    )


@pytest.mark.parametrize("element", ["bfloat", "i8"])
def test_two_threads_with_operands_in_cache_split_along_m(element: str) -> None:
    """512 cubed is split along M; for 1024 cubed, each packs the panels of its columns only."""
    near, far = (calls_of(n, n, n, ThreadTeam(2), ("amx", element)) for n in (512, 1024))
    assert {call.part[2:] for call in near} == {(0, 16)}
    assert {call.part[2:] for call in far} == {(0, 16), (16, 32)}


@pytest.mark.parametrize(
    ("target", "element"), [("avx512", FLOAT), ("avx512", BFLOAT), ("amx", BFLOAT), ("avx2", FLOAT)]
)
def test_work_is_what_the_recipe_predicts(target: str, element: Type) -> None:
    """And what is read from beyond a core's caches; panels that are prepacked need no packing."""
    a, b, c = (MatrixView(of, 512, 512, 512, 1) for of in (element, element, FLOAT))
    gemm = Gemm(a, b, c, None, "f", "f")
    recipe = select(gemm, find_target(target))
    recipe = replace(recipe, packing=replace(recipe.packing, b=True))
    work, prepacked = (gemm_parallel_cost(gemm, r, find_target(target)) for r in (recipe, recipe.with_prepacked_b()))
    assert work is not None
    assert prepacked is not None
    read = sum(view.bytes_moved for view in (a, b)) / 8
    assert work.cycles == pytest.approx(cost(gemm, recipe, find_target(target)).compute + read, rel=0.05)
    assert prepacked.cycles < work.cycles
    assert prepacked.tile == work.tile


def test_grid_of_a_large_square_is_balanced() -> None:
    """16 threads, 2048 x 2048: each has ten jobs, the last of which are small."""
    parts = parts_of(2048, 2048, 256, 16)
    work = sorted((row_end - row) * (column_end - column) for row, row_end, column, column_end in parts)
    share = sum(work) / 16
    assert 160 <= len(work) <= 240
    assert max(work) <= share / 4 * 1.125
    assert max(work[:32]) <= share / 20


def takings(total: int, most: int, team: ThreadTeam, group: int = 0) -> list[tuple[int, int, int]]:
    """The jobs of a team in order: owner of the share, first and last unit."""
    module = parse("")
    b = Builder(module, new_function(module, "f", [(PTR, "", "data")], "", linkage=""))

    def share(b: Builder, own: list[Value], thread: Thread, taken: Value) -> None:
        assert [str(value.type) for value in own] == ["ptr"]

        def portion(b: Builder, owner: Value) -> ThreadShare:
            def run(b: Builder, first: Value, last: Value) -> None:
                b.call_named("job", VOID, [owner, first, last])

            units = b.mul(b.binary("and", b.add(owner, 1), const_int(I64, 1)), total)  # none of threads 1, 3, ...
            return ThreadShare(units, run)

        emit_stealing(b, taken, thread, most, ThreadShares(portion, const_int(I64, group) if group else None))

    run_in_shares(b, "body", [b.function.arguments[0].value], share, const_int(I32, team.max_threads))
    b.ret()
    calls: list[tuple[int, int, int]] = []

    def noted(owner: int, first: int, last: int) -> None:
        calls.append((owner, first, last))

    Machine(parse(str(module)), foreign={"job": noted}, team=team).call("f", np.zeros(1))
    return calls


def test_jobs_of_a_share_become_smaller() -> None:
    jobs = [(first, last) for _, first, last in takings(64, 100, ThreadTeam(1))]
    assert [last - first for first, last in jobs] == [16, 16, 8, 8, 4, 4, 2, 2, 1, 3]
    assert [first for first, _ in jobs[1:]] == [last for _, last in jobs[:-1]]


def test_small_shares_have_few_jobs() -> None:
    assert takings(64, 1, ThreadTeam(2)) == [(0, 0, 64)]
    assert [last - first for _, first, last in takings(64, 2, ThreadTeam(1))] == [16, 16, 8, 24]
    assert [last - first for _, first, last in takings(3, 100, ThreadTeam(1))] == [1, 1, 1]


@pytest.mark.parametrize("team", [ThreadTeam(5), ThreadTeam(5, reverse_order=True), ThreadTeam(2)])
def test_a_thread_steals_after_its_own_share(team: ThreadTeam) -> None:
    """The evaluator runs threads sequentially, so the first one executes all jobs: its own share first."""
    calls = takings(10, 100, team)
    owners = list(dict.fromkeys(owner for owner, _, _ in calls))
    assert owners == ([0] if team.max_threads == 2 else [4, 0, 2] if team.reverse_order else [0, 2, 4])
    for owner in owners:
        units = [unit for of, first, last in calls if of == owner for unit in range(first, last)]
        assert units == list(range(10))


@pytest.mark.parametrize("team", [1, 2, 5, 6, 8])
@pytest.mark.parametrize("group", [1, 2, 3, 4])
def test_a_thread_steals_from_its_group_first(team: int, group: int) -> None:
    """The last thread of a team runs first, and all shares: each once."""
    owners = list(dict.fromkeys(owner for owner, _, _ in takings(10, 100, ThreadTeam(team, reverse_order=True), group)))
    assert sorted(owners) == [number for number in range(team) if number % 2 == 0]
    last = team - 1
    own = [owner for owner in owners if owner // group == last // group]
    assert team % group or owners[: len(own)] == own
    assert own == sorted(own, key=lambda owner: (owner - last) % group)


def test_small_work_has_no_team() -> None:
    assert ParallelCost(8, 8, 100.0).max_threads(10_000) == 0
    assert ParallelCost(8, 8, 1000.0).max_threads(10_000) == 6
    assert ParallelCost(2, 1, 1e9).max_threads(10_000) == 2


def view(rows: int, cols: int, stride: int | None = None) -> MatrixView:
    return MatrixView(FLOAT, rows, cols, stride or cols, 1)


def value(rows: int, cols: int, *views: MatrixView) -> Expression:
    return Expression(rows, cols, tuple(MatrixLeaf(FLOAT, each, number) for number, each in enumerate(views)))


def cut(problem: Elementwise | Copy | Reduction) -> ProblemPartition:
    parts = partition_problem(problem, find_target("avx512"), 10_000)
    assert parts is not None
    return parts


def test_a_dense_map_is_split_as_one_row() -> None:
    parts = cut(Elementwise(view(1000, 1000), value(1000, 1000, view(1000, 1000))))
    assert isinstance(parts.part, Elementwise)
    size = parts.part.value.cols
    assert parts.part.value.rows == 1
    assert size % 1024 == 0
    assert isinstance(parts.rest, Elementwise)
    assert parts.count * size + parts.rest.value.cols == 1_000_000
    assert [pointer.step for pointer in parts.pointers] == [size, size]


def test_broadcast_operands_are_not_split() -> None:
    parts = cut(Elementwise(view(4096, 100, 128), value(4096, 100, view(4096, 100, 104), view(1, 100))))
    assert isinstance(parts.part, Elementwise)
    size = parts.part.value.rows
    assert [pointer.step for pointer in parts.pointers] == [128 * size, 104 * size, 0]


@pytest.mark.parametrize(
    ("axis", "to", "step"), [(0, MatrixView(FLOAT, 1, 4096, 0, 1), 1), (1, MatrixView(FLOAT, 4096, 1, 1, 1), 4096)]
)
def test_a_reduction_is_split_along_the_axis_that_stays(axis: int, to: MatrixView, step: int) -> None:
    parts = cut(Reduction(to, value(4096, 4096, view(4096, 4096)), "add", axis))
    assert isinstance(parts.part, Reduction)
    extent = parts.part.value.cols if axis == 0 else parts.part.value.rows
    assert parts.count * extent == 4096
    assert [pointer.step for pointer in parts.pointers] == [extent, step * extent]


def test_the_epilogue_of_a_reduction_is_split_with_it() -> None:
    old, bias = (
        MatrixLeaf(FLOAT, MatrixView(FLOAT, 1, 4096, 0, 1), 1),
        MatrixLeaf(FLOAT, MatrixView(FLOAT, 1, 4096, 0, 3), 2),
    )
    finish = Expression(1, 4096, (ProductLeaf(FLOAT), old, bias))
    to = MatrixView(FLOAT, 4096, 1, 1, 1)
    parts = cut(Reduction(to, value(4096, 4096, view(4096, 4096)), "add", 1, epilogue=finish))
    assert isinstance(parts.part, Reduction)
    assert parts.part.epilogue is not None
    rows = parts.part.value.rows
    assert parts.part.epilogue.cols == rows
    assert [leaf.view.cols for leaf in parts.part.epilogue.leaves()] == [rows, rows]
    assert [pointer.step for pointer in parts.pointers] == [rows, 4096 * rows, rows, 3 * rows]


@pytest.mark.parametrize(("rows", "cols"), [(24, 10816), (10816, 24), (10816, 3)])
def test_the_parts_of_a_transpose_write_to_lines_of_their_own(rows: int, cols: int) -> None:
    """A part is whole rows of the destination, or at least a line of each of a few rows."""
    parts = cut(Copy(view(rows, cols), MatrixView(FLOAT, rows, cols, 1, rows)))
    assert isinstance(parts.part, Copy)
    written, line = parts.part.destination, 16
    assert written.rows == rows or written.rows % line == 0
    assert parts.pointers[0].step == (written.cols * rows if written.rows == rows else written.rows)
    assert parts.total > 8


@pytest.mark.parametrize("cols", [64, 1 << 14])
def test_parts_of_large_results_are_stored_non_temporally(cols: int) -> None:
    """A part of 1 << 14 columns is far from 32 MB, but all of them are not."""
    large, target = view(4096, cols), find_target("avx512")
    parts = cut(Elementwise(large, value(4096, cols, large)))
    assert isinstance(parts.part, Elementwise)
    assert parts.part.bytes_moved < 32 << 20
    assert bool(store_alignment(parts.part, target)) == (cols > 64)
    copies = cut(Copy(large, large))
    assert isinstance(copies.part, Copy)
    assert bool(store_alignment(copies.part, target)) == (cols > 64)
    part = RowFusionPart(Elementwise(large, value(4096, cols, large)), (0, 1), (), is_disjoint=True)
    rows = partition_problem(RowFusion(4096, (part,), (FLOAT, FLOAT), (), frozenset()), target, 10_000)
    assert rows is not None
    assert isinstance(rows.part, RowFusion)
    (piece,) = (p.problem for p in rows.part.parts)
    assert isinstance(piece, Elementwise)
    assert bool(store_alignment(piece, target)) == (cols > 64)


def test_a_single_remaining_row_may_be_in_place() -> None:
    """In place stays in place: the pitch of a single row says nothing."""
    parts = cut(Elementwise(view(1001, 512, 600), value(1001, 512, view(1001, 512, 600))))
    assert isinstance(parts.rest, Elementwise)
    assert parts.rest.value.rows == 1
    assert may_alias_leaf(parts.rest.value, parts.rest.destination)


def test_one_pointer_with_two_strides_is_not_split() -> None:
    twice = Expression(4096, 4096, (MatrixLeaf(FLOAT, view(4096, 4096), 0), MatrixLeaf(FLOAT, view(1, 4096), 0)))
    assert partition_problem(Elementwise(view(4096, 4096), twice), find_target("avx512"), 10_000) is None


def test_evaluating_a_team_in_both_orders_detects_a_race() -> None:
    """A team whose threads write to one place: the last one wins."""
    text = """declare void @GOMP_parallel(ptr, ptr, i32, i32)
declare i32 @omp_get_thread_num()
declare i32 @omp_in_parallel()
define internal void @body(ptr %data) {
  %n = call i32 @omp_get_thread_num()
  store i32 %n, ptr %data
  ret void
}
define i32 @f(ptr %data) {
  call void @GOMP_parallel(ptr @body, ptr %data, i32 0, i32 0)
  %in = call i32 @omp_in_parallel()
  ret i32 %in
}
"""
    data = np.full(1, -1, np.int32)
    for team, last in ((ThreadTeam(1), 0), (ThreadTeam(5), 4), (ThreadTeam(5, reverse_order=True), 0)):
        assert Machine(parse(text), team=team).call("f", data) == 0
        assert data[0] == last


def test_options_name_the_known_threads() -> None:
    with pytest.raises(TlxError, match="'threads': 'pthreads' is not one of 'none', 'openmp'"):
        Options(threads="pthreads")  # pyright: ignore[reportArgumentType]


def test_a_loop_with_dependent_iterations_is_not_shared() -> None:
    """A marked loop that writes to one place, and one that writes where its index says."""
    text = """define internal void @{name}(ptr %c, ptr %a) {{
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %at = mul i64 %i, 64
  %from = getelementptr inbounds float, ptr %a, i64 %at
  %to = getelementptr inbounds float, ptr %c, i64 {place}
  call void @kernel(ptr %to, ptr %from)
  %next = add i64 %i, 1
  %again = icmp slt i64 %next, 1000
  br i1 %again, label %loop, label %end, !tlx.independent !{{}}
end:
  ret void
}}
declare void @kernel(ptr, ptr)
"""
    for place, shared in (("0", False), ("%at", True)):
        module = parse_fully(text.format(name="nest", place=place))
        parallelise_nests(TeamKernels(module), list(module.functions), LoopCosts({"kernel": 1000.0}, {}), 10_000)
        assert ("GOMP_parallel" in str(module)) == shared
        assert ("@nest.part" in str(module)) == shared


def test_four_byte_arguments_reach_threads() -> None:
    """Two of them are neighbours in the structure: the second is aligned to 4 bytes, not to 8."""
    text = (
        "define void @f(ptr %y, i32 %a, i32 %b) {\n"
        "  %i = insertelement <4096 x i32> undef, i32 %a, i32 0\n"
        "  %v = shufflevector <4096 x i32> %i, <4096 x i32> undef, <4096 x i32> zeroinitializer\n"
        "  %j = insertelement <4096 x i32> undef, i32 %b, i32 0\n"
        "  %w = shufflevector <4096 x i32> %j, <4096 x i32> undef, <4096 x i32> zeroinitializer\n"
        "  %t = call token @llvm.tensor.load(ptr elementtype(i32) %y, <1 x i32> <i32 4096>, <1 x i32> <i32 0>, "
        "<1 x i32> <i32 0>, <1 x i32> <i32 0>)\n"
        "  %o = call <4096 x i32> @llvm.tensor.tovector(token %t)\n"
        "  %p = mul <4096 x i32> %o, %v\n  %s = add <4096 x i32> %p, %w\n"
        "  store <4096 x i32> %s, ptr %y\n  ret void\n}\n"
    )
    lowered = lower(parse(text), "avx2", options=Options(threads="openmp", thread_cycles=1))
    module = parse_fully(str(lowered))
    assert "GOMP_parallel" in str(module)
    y = np.arange(4096, dtype=np.int32)
    Machine(module, team=ThreadTeam(3)).call("f", y, 5, 7)
    assert np.array_equal(y, np.arange(4096) * 5 + 7)
