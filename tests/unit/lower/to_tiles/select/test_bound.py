"""The bound in the remarks on kernels without products: bytes, the cache that holds them, and instructions."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tlx.ir.parser.module import parse
from tlx.ir.types import FLOAT
from tlx.lower.options import Options
from tlx.lower.pipeline import lower
from tlx.lower.to_tiles.expression import Expression, MatrixLeaf, MatrixView, UnaryNode
from tlx.lower.to_tiles.problem import Elementwise, Reduction, RowFusion, RowFusionPart
from tlx.lower.to_tiles.remarks import describe_kernel
from tlx.lower.to_tiles.select.elementwise import roofline
from tlx.target.costs.memory import Caches
from tlx.target.lookup import find_target

TARGET = replace(find_target("avx512"), caches=Caches(l1=32 << 10, l2=1 << 20, l3=16 << 20))


def view(rows: int, cols: int) -> MatrixView:
    return MatrixView(FLOAT, rows, cols, cols, 1)


def unary(name: str, rows: int, cols: int) -> Expression:
    return Expression(rows, cols, (MatrixLeaf(FLOAT, view(rows, cols), 0), UnaryNode(FLOAT, name, (0,))))


def relu(rows: int, cols: int) -> Elementwise:
    return Elementwise(view(rows, cols), unary("relu", rows, cols))


@pytest.mark.parametrize(
    ("cols", "place"),
    [(4096, "L1"), (4097, "L2"), (1 << 17, "L2"), (1 << 18, "L3"), (1 << 21, "L3"), (1 << 22, "memory")],
)
def test_the_bound_is_the_first_cache_that_holds_everything(cols: int, place: str) -> None:
    bound = roofline(relu(1, cols), TARGET)
    assert bound.bytes_moved == 8 * cols
    assert bound.level == place
    assert bound.nontemporal == (place == "memory")


def test_remarks_name_no_non_temporal_stores_of_short_rows() -> None:
    to = MatrixView(FLOAT, 1 << 19, 20, 24, 1)
    assert not roofline(Elementwise(to, unary("relu", 1 << 19, 20)), TARGET).nontemporal


def test_expensive_work_takes_a_share_of_the_bandwidth() -> None:
    cheap, costly = (roofline(Elementwise(view(1, 4096), unary(n, 1, 4096)), TARGET) for n in ("relu", "tanh"))
    assert cheap.share == 1
    assert 0 < costly.share < 0.5
    assert roofline(Elementwise(view(1, 1 << 24), unary("tanh", 1, 1 << 24)), TARGET).share > costly.share


def test_gaps_between_rows_do_not_count() -> None:
    rows, cols = 1024, 4096
    first = RowFusionPart(relu(rows, cols), (1, 0), (), is_disjoint=False)
    second = RowFusionPart(relu(rows, cols), (2, 1), (), is_disjoint=True)
    group = RowFusion(rows, (first, second), (FLOAT,) * 3, (), frozenset({1}))
    assert roofline(group, TARGET).bytes_moved == 2 * 4 * rows * cols
    assert roofline(replace(group, scratch_pointers=frozenset()), TARGET).bytes_moved == 3 * 4 * rows * cols
    assert describe_kernel(group, TARGET).endswith(
        "; moves 32.0 MiB, beyond the caches: bound by memory; non-temporal stores"
    )


def test_remarks_name_the_bound() -> None:
    far = describe_kernel(relu(4096, 4096), TARGET)
    assert far.endswith("in one pass; moves 128.0 MiB, beyond the caches: bound by memory; non-temporal stores")
    near = describe_kernel(Elementwise(view(1, 1024), unary("tanh", 1, 1024)), TARGET)
    assert "; moves 8.0 KiB, in the L1 cache: bound by instructions, about " in near
    assert near.endswith(" % of the bandwidth of that cache")
    sums = Reduction(
        MatrixView(FLOAT, 4096, 1, 1, 1), Expression(4096, 4096, (MatrixLeaf(FLOAT, view(4096, 4096), 0),)), "add", 1
    )
    assert describe_kernel(sums, TARGET).endswith("; moves 64.0 MiB, beyond the caches: bound by memory")


def test_remarks_agree_with_kernels_about_non_temporal_stores() -> None:
    for cols in (1 << 20, 1 << 22):
        text = (
            f"define void @f(ptr noalias %y, ptr noalias %x) {{\n  %v = load <{cols} x float>, ptr %x\n"
            f"  %r = fneg <{cols} x float> %v\n  store <{cols} x float> %r, ptr %y\n  ret void\n}}\n"
        )
        module = str(lower(parse(text), TARGET, options=Options(stop_after="to-tiles")))
        assert ("!nontemporal" in module) == roofline(relu(1, cols), TARGET).nontemporal
